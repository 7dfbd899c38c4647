# Writes OUTPUT: the text of INPUT as one C++ string literal.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "R\"fsr-text(${text})fsr-text\"\n")
