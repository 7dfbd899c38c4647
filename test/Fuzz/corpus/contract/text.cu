#include <cuda_fp16.h>
#define R
const char *s = R"x(
#include "/a"
)x"; // y \
 z
int main() { k<<<1, 2>>>(); }
#if __has_include("b")
#endif
