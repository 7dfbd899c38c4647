// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libcurl's multi interface. Time limits are kept here, not by libcurl, which
// would count the time its caller spends elsewhere.
//
// A proxy comes from the environment by libcurl itself. Certificates do not:
// only curl's program reads CURL_CA_BUNDLE and SSL_CERT_FILE, so this does too.
//
//===----------------------------------------------------------------------===//

#include "Http.h"

#include "Keys.h"

#include "fsr/Support/Error.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <list>

namespace fsr {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A server that cannot be connected to by then is away.
static constexpr long connectTimeoutMs = 30000;

namespace {

struct Transfer {
  Transfer(size_t id, HttpRequest request)
      : id(id), request(std::move(request)) {}
  Transfer(const Transfer &) = delete;
  Transfer &operator=(const Transfer &) = delete;
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }

  size_t id;
  HttpRequest request;
  CURL *easy = nullptr;
  curl_slist *headers = nullptr;
  std::string body;
  size_t maxBodyBytes = 0;
  bool tooLong = false;
  Clock::time_point deadline;
  char error[CURL_ERROR_SIZE] = "";
};

} // namespace

struct HttpPool::Impl {
  Settings settings;
  CURLM *multi = nullptr;
  std::list<Transfer> transfers; ///< Addresses are given to libcurl.
  std::deque<std::pair<size_t, HttpReply>> ended;

  void finish(std::list<Transfer>::iterator at, HttpReply reply);
  void collect();
  void expire();
};

static size_t takeBody(char *bytes, size_t, size_t count, void *user) {
  auto &transfer = *static_cast<Transfer *>(user);
  if (transfer.body.size() + count > transfer.maxBodyBytes) {
    transfer.tooLong = true;
    return 0;
  }
  transfer.body.append(bytes, count);
  return count;
}

/// True where the request cannot have reached anybody. In doubt it has.
static bool neverSent(CURL *easy, CURLcode code) {
  switch (code) {
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_CONNECT:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_PEER_FAILED_VERIFICATION:
    return true;
  default:
    // Set when everything is ready for the request itself to go out.
    curl_off_t ready = 0;
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready);
    return ready == 0;
  }
}

/// Whether another try could end in another way.
static bool canChange(CURLcode code) {
  switch (code) {
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_URL_MALFORMAT:
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
    return false;
  default:
    return true;
  }
}

void HttpPool::Impl::finish(std::list<Transfer>::iterator at, HttpReply reply) {
  curl_multi_remove_handle(multi, at->easy);
  ended.emplace_back(at->id, std::move(reply));
  transfers.erase(at);
}

/// Takes what libcurl says has ended.
void HttpPool::Impl::collect() {
  int left = 0;
  while (CURLMsg *message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE)
      continue;
    CURL *easy = message->easy_handle;
    CURLcode code = message->data.result;
    auto at = std::find_if(transfers.begin(), transfers.end(),
                           [&](const Transfer &t) { return t.easy == easy; });
    if (at == transfers.end())
      continue;
    HttpReply reply;
    reply.sent = !neverSent(easy, code);
    if (code == CURLE_OK) {
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      curl_off_t retryAfter = 0;
      curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retryAfter);
      reply.end = HttpReply::End::Complete;
      reply.status = status;
      reply.body = std::move(at->body);
      // A century is more than anybody waits, and safe to multiply.
      if (retryAfter > 0)
        reply.retryAfter = std::chrono::seconds(
            std::min<curl_off_t>(retryAfter, int64_t(100) * 365 * 86400));
    } else if (at->tooLong) {
      reply.end = HttpReply::End::TooLong;
      reply.why =
          "a reply of more than " + std::to_string(at->maxBodyBytes) + " bytes";
    } else {
      reply.end =
          canChange(code) ? HttpReply::End::Broken : HttpReply::End::Refused;
      reply.why = curl_easy_strerror(code);
      if (at->error[0])
        reply.why += " (" + withoutKeys(at->error) + ")";
    }
    finish(at, std::move(reply));
  }
}

void HttpPool::Impl::expire() {
  Clock::time_point now = Clock::now();
  for (auto at = transfers.begin(); at != transfers.end();) {
    auto current = at++;
    if (now < current->deadline)
      continue;
    HttpReply reply;
    reply.end = HttpReply::End::TimedOut;
    reply.sent = !neverSent(current->easy, CURLE_OPERATION_TIMEDOUT);
    reply.why = "no whole answer within " +
                std::to_string(settings.timeout.count()) + " ms";
    finish(current, std::move(reply));
  }
}

HttpPool::HttpPool(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

HttpPool::~HttpPool() {
  for (Transfer &transfer : impl->transfers)
    curl_multi_remove_handle(impl->multi, transfer.easy);
  impl->transfers.clear();
  curl_multi_cleanup(impl->multi);
}

llvm::Expected<std::unique_ptr<HttpPool>>
HttpPool::create(const Settings &settings) {
  // Once a process, and never undone: the host may use libcurl itself.
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM *multi = started == CURLE_OK ? curl_multi_init() : nullptr;
  if (!multi)
    return makeError(ErrorKind::Unavailable, "libcurl cannot be started");
  auto impl = std::make_unique<Impl>();
  impl->settings = settings;
  impl->multi = multi;
  return std::unique_ptr<HttpPool>(new HttpPool(std::move(impl)));
}

size_t HttpPool::inFlight() const { return impl->transfers.size(); }

void HttpPool::start(size_t id, HttpRequest request) {
  Transfer &transfer = impl->transfers.emplace_back(id, std::move(request));
  transfer.maxBodyBytes = impl->settings.maxBodyBytes;
  // A longer one is as good as none, and must not overflow.
  transfer.deadline =
      Clock::now() + std::min<milliseconds>(impl->settings.timeout,
                                            std::chrono::hours(24 * 365));
  auto fail = [&](const char *why) {
    HttpReply reply;
    reply.why = why;
    impl->ended.emplace_back(id, std::move(reply));
    impl->transfers.pop_back();
  };
  CURL *easy = transfer.easy = curl_easy_init();
  if (!easy)
    return fail("libcurl has no handle");
  // "Expect:" off: a server that waits for it delays each request by a second.
  for (const std::string &header : transfer.request.headers)
    transfer.headers = curl_slist_append(transfer.headers, header.c_str());
  transfer.headers = curl_slist_append(transfer.headers, "Expect:");
  curl_easy_setopt(easy, CURLOPT_URL, transfer.request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                   curl_off_t(transfer.request.body.size()));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, takeBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "fsr"); // Some gateways want one.
  // Signals are the host's: its threads must not be interrupted by a look-up.
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  // A key must not follow a redirection to somebody else.
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                   long(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  const char *bundle = std::getenv("CURL_CA_BUNDLE");
  if (!bundle || !*bundle)
    bundle = std::getenv("SSL_CERT_FILE");
  if (bundle && *bundle)
    curl_easy_setopt(easy, CURLOPT_CAINFO, bundle);
  if (const char *folder = std::getenv("SSL_CERT_DIR"); folder && *folder)
    curl_easy_setopt(easy, CURLOPT_CAPATH, folder);
  if (curl_multi_add_handle(impl->multi, easy) != CURLM_OK)
    return fail("libcurl takes no more requests");
}

std::optional<std::pair<size_t, HttpReply>>
HttpPool::turn(std::chrono::milliseconds wait) {
  if (impl->ended.empty()) {
    int running = 0;
    curl_multi_perform(impl->multi, &running);
    impl->collect();
    impl->expire();
  }
  if (impl->ended.empty()) {
    for (const Transfer &transfer : impl->transfers)
      wait = std::min(wait, std::chrono::ceil<milliseconds>(transfer.deadline -
                                                            Clock::now()));
    if (wait.count() > 0) {
      int ready = 0;
      curl_multi_poll(impl->multi, nullptr, 0, int(wait.count()), &ready);
    }
    return std::nullopt;
  }
  std::pair<size_t, HttpReply> first = std::move(impl->ended.front());
  impl->ended.pop_front();
  return first;
}

void HttpPool::extendDeadlines(Clock::duration by) {
  for (Transfer &transfer : impl->transfers)
    transfer.deadline += by;
}

void HttpPool::abandonAll() {
  while (!impl->transfers.empty()) {
    auto at = impl->transfers.begin();
    HttpReply reply;
    reply.end = HttpReply::End::Stopped;
    reply.sent = !neverSent(at->easy, CURLE_ABORTED_BY_CALLBACK);
    reply.why = "stopped";
    impl->finish(at, std::move(reply));
  }
}

std::optional<std::string> findUrlFault(llvm::StringRef url) {
  CURLU *parts = curl_url();
  char *scheme = nullptr, *host = nullptr;
  bool good = parts &&
              curl_url_set(parts, CURLUPART_URL, url.str().c_str(),
                           CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              (llvm::StringRef(scheme) == "http" ||
               llvm::StringRef(scheme) == "https") &&
              *host && !url.contains('?') && !url.contains('#');
  curl_free(scheme);
  curl_free(host);
  curl_url_cleanup(parts);
  if (good)
    return std::nullopt;
  return "url '" + printableUrl(url) +
         "': expected http://HOST… or https://HOST… without a query";
}

std::string printableUrl(llvm::StringRef url) {
  url = url.take_until([](char c) { return c == '?' || c == '#'; });
  auto [scheme, rest] = url.split("://");
  if (rest.empty())
    return url.rsplit('@').second.empty() ? url.str()
                                          : url.rsplit('@').second.str();
  llvm::StringRef host = rest.take_until([](char c) { return c == '/'; });
  llvm::StringRef path = rest.drop_front(host.size());
  if (host.contains('@'))
    host = host.rsplit('@').second;
  return (scheme + "://" + host + path).str();
}

} // namespace fsr
