#include "transport/tcp/tcp_port.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "core/check.h"
#include "core/log.h"
#include "core/status.h"
#include "transport/tcp/asio.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/sockets.h"
#include "transport/tcp/tcp_wire.h"

namespace ranklab::transport {
namespace {

constexpr Nanos kHelloTime = std::chrono::seconds(5);
constexpr Nanos kParkTime = std::chrono::seconds(10);
constexpr Nanos kNoDescriptorPause = std::chrono::milliseconds(100);
constexpr std::size_t kGreetingsMax = 1024;  // connections that have not been let in

}  // namespace

class TcpPort::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(LiveLoop& loop, tcp::acceptor acceptor, const TcpOptions& options)
      : loop_(loop), options_(options), acceptor_(std::move(acceptor)) {
    port_ = acceptor_.local_endpoint().port();
  }

  void Start() {
    asio::co_spawn(loop_.io_context(), AcceptLoop(shared_from_this()), asio::detached);
  }

  std::shared_ptr<TcpConnections> Open(const WireOptions& options, DoneFn ready);
  void Close();

  LiveLoop& loop() { return loop_; }
  int port() const { return port_; }
  std::int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static asio::awaitable<void> AcceptLoop(std::shared_ptr<Core> self);
  static asio::awaitable<void> GreetAndCount(std::shared_ptr<Core> self, tcp::socket socket);
  asio::awaitable<void> Greet(tcp::socket& socket);
  asio::awaitable<absl::StatusOr<Hello>> ReadHello(tcp::socket& socket);
  asio::awaitable<bool> WriteAnswer(tcp::socket& socket, Answer answer);
  asio::awaitable<void> Park(const Hello& hello);
  bool IsEarly(const Hello& hello) const {
    return !opened_any_ || hello.generation > newest_generation_;
  }
  std::shared_ptr<TcpConnections> Find(const Hello& hello);
  void Refuse(const tcp::socket& socket, const std::string& why);

  LiveLoop& loop_;
  const TcpOptions options_;
  tcp::acceptor acceptor_;
  int port_ = 0;
  bool closed_ = false;
  bool opened_any_ = false;
  std::uint32_t newest_generation_ = 0;
  std::vector<std::weak_ptr<TcpConnections>> opened_;
  std::list<asio::steady_timer*> parked_;  // each ends the wait of one dialer
  std::size_t greetings_ = 0;
  std::atomic<std::int64_t> refused_{0};
};

asio::awaitable<void> TcpPort::Core::AcceptLoop(std::shared_ptr<Core> self) {
  asio::steady_timer timer(self->loop_.io_context());
  while (!self->closed_) {
    auto [error, socket] = co_await self->acceptor_.async_accept(kAwait);
    if (self->closed_) {
      break;
    }
    if (error) {  // the dialer is gone already, or this process has too many files open
      timer.expires_after(kNoDescriptorPause);
      co_await timer.async_wait(kAwait);
    } else if (self->greetings_ >= kGreetingsMax) {
      self->Refuse(socket, "too many others wait");
    } else {
      asio::co_spawn(self->loop_.io_context(), GreetAndCount(self, std::move(socket)),
                     asio::detached);
    }
  }
}

asio::awaitable<void> TcpPort::Core::GreetAndCount(std::shared_ptr<Core> self, tcp::socket socket) {
  ++self->greetings_;
  co_await self->Greet(socket);
  --self->greetings_;
}

asio::awaitable<void> TcpPort::Core::Greet(tcp::socket& socket) {
  TuneSocket(socket);
  const absl::StatusOr<Hello> hello = co_await ReadHello(socket);
  if (!hello.ok()) {
    Refuse(socket, MessageOf(hello.status()));
    co_return;
  }
  if (IsEarly(*hello)) {
    co_await Park(*hello);
    if (closed_ || !PeerIsSilentAndThere(socket)) {
      co_return;  // it gave up: nobody to refuse
    }
  }
  const std::shared_ptr<TcpConnections> connections = Find(*hello);
  Answer answer = IsEarly(*hello) ? Answer::kNotOpenYet : Answer::kOtherGeneration;
  if (connections != nullptr) {
    answer = connections->Consider(*hello);
  }
  std::unique_ptr<SharedSegment> segment;
  if (answer == Answer::kWelcome) {
    segment = connections->OpenOffered(*hello, socket);
    answer = segment != nullptr ? Answer::kWelcomeToShare : answer;
  }
  const bool written = co_await WriteAnswer(socket, answer);
  if (!IsWelcome(answer)) {
    Refuse(socket, absl::StrFormat("it says to be %s of generation %d: %s", NameOf(hello->from),
                                   hello->generation, ReasonOf(answer)));
  } else if (written && connections->Consider(*hello) == Answer::kWelcome) {
    connections->Attach(hello->from, std::move(socket), std::move(segment));
  }
}

asio::awaitable<absl::StatusOr<Hello>> TcpPort::Core::ReadHello(tcp::socket& socket) {
  using asio::experimental::awaitable_operators::operator||;
  HelloBytes bytes;
  asio::steady_timer timer(loop_.io_context(), kHelloTime);
  const auto first =
      co_await (asio::async_read(socket, asio::buffer(bytes), kAwait) || timer.async_wait(kAwait));
  if (first.index() == 1) {
    co_return DeadlineExceeded("it did not say who it is");
  }
  if (const error_code error = std::get<0>(std::get<0>(first))) {
    co_return Unavailable("it did not say who it is: %s", error.message());
  }
  co_return DecodeHello(bytes);
}

asio::awaitable<bool> TcpPort::Core::WriteAnswer(tcp::socket& socket, Answer answer) {
  const AnswerBytes bytes = EncodeAnswer(answer);
  const auto [error, written] = co_await asio::async_write(socket, asio::buffer(bytes), kAwait);
  co_return !error;
}

asio::awaitable<void> TcpPort::Core::Park(const Hello& hello) {
  const auto until = std::chrono::steady_clock::now() + kParkTime;
  asio::steady_timer timer(loop_.io_context());
  while (IsEarly(hello) && !closed_ && std::chrono::steady_clock::now() < until) {
    timer.expires_at(until);
    const auto place = parked_.insert(parked_.end(), &timer);
    co_await timer.async_wait(kAwait);  // until Open or Close cancels it
    parked_.erase(place);
  }
}

// The wire that is looked for, or else another of its generation, which says why not.
std::shared_ptr<TcpConnections> TcpPort::Core::Find(const Hello& hello) {
  std::shared_ptr<TcpConnections> found;
  for (const std::weak_ptr<TcpConnections>& opened : opened_) {
    const std::shared_ptr<TcpConnections> connections = opened.lock();
    if (connections != nullptr && connections->generation() == hello.generation &&
        !connections->aborted() && (found == nullptr || connections->self() == hello.to)) {
      found = connections;
    }
  }
  return found;
}

void TcpPort::Core::Refuse(const tcp::socket& socket, const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  Log(LogLevel::kWarning, "port %d refused a connection from %s: %s", port_, RemoteName(socket),
      why);
}

std::shared_ptr<TcpConnections> TcpPort::Core::Open(const WireOptions& options, DoneFn ready) {
  RANKLAB_CHECK(loop_.OnLoop());
  auto connections =
      std::make_shared<TcpConnections>(loop_, options, options_.body_checksums, std::move(ready));
  std::erase_if(opened_, [](const auto& opened) { return opened.expired(); });
  opened_.push_back(connections);
  newest_generation_ =
      opened_any_ ? std::max(newest_generation_, options.generation) : options.generation;
  opened_any_ = true;
  for (asio::steady_timer* timer : parked_) {
    timer->cancel();
  }
  connections->Start();
  return connections;
}

void TcpPort::Core::Close() {
  closed_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  for (asio::steady_timer* timer : parked_) {
    timer->cancel();
  }
}

absl::StatusOr<std::unique_ptr<TcpPort>> TcpPort::Listen(LiveLoop& loop, const std::string& address,
                                                         const TcpOptions& options) {
  ASSIGN_OR_RETURN(tcp::acceptor acceptor, ListenOn(loop.io_context(), address));
  auto core = std::make_shared<Core>(loop, std::move(acceptor), options);
  loop.Post([core] { core->Start(); });
  return std::unique_ptr<TcpPort>(new TcpPort(std::move(core)));
}

TcpPort::TcpPort(std::shared_ptr<Core> core) : core_(std::move(core)) {}

TcpPort::~TcpPort() {
  if (core_->loop().OnLoop() || core_->loop().stopped()) {
    core_->Close();
  } else {
    core_->loop().RunAndWait([this] { core_->Close(); });
  }
}

int TcpPort::port() const { return core_->port(); }

std::unique_ptr<Wire> TcpPort::Open(const WireOptions& options, DoneFn ready) {
  return std::make_unique<TcpWire>(core_->Open(options, std::move(ready)));
}

std::int64_t TcpPort::refused_connections() const { return core_->refused(); }

}  // namespace ranklab::transport
