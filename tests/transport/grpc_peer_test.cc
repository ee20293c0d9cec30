// Peers that are processes of their own, and die or freeze.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "core/log.h"
#include "tests/transport/grpc_cluster.h"
#include "transport/grpc/frame_codec.h"

namespace ranklab::transport {
namespace {

using testing::HasSubstr;

constexpr Endpoint kWorker0{Role::kWorker, 0};
constexpr Endpoint kServer0{Role::kServer, 0};

// Worker 0, as somebody else's program (tests/cluster/foreign_peer.py).
class PeerProcess {
 public:
  explicit PeerProcess(const std::string& address) {
    const std::string hello = EncodeHello(
        {.generation = 1, .secret = GrpcNode::kSecret, .from = kWorker0, .to = kServer0});
    const std::string command = "exec /usr/bin/python3 tests/cluster/foreign_peer.py " + address +
                                " " + absl::BytesToHexString(hello);
    output_ = popen(command.c_str(), "r");
    RANKLAB_CHECK(output_ != nullptr, "cannot run %s", command);
    const std::string first = ReadLine();
    pid_ = std::atoi(first.c_str());
    stands_ = pid_ > 0 && ReadLine() == "standing\n";
  }
  ~PeerProcess() {
    Signal(SIGKILL);
    pclose(output_);
  }

  bool stands() const { return stands_; }
  void Signal(int signal) {
    if (pid_ > 0) {
      kill(pid_, signal);
    }
  }

 private:
  std::string ReadLine() {
    char line[200] = "";
    return fgets(line, sizeof(line), output_) == nullptr ? "" : line;
  }

  FILE* output_;
  pid_t pid_ = 0;
  bool stands_ = false;
};

class GrpcPeerTest : public testing::Test {
 protected:
  void SetUp() override {
    server_.Open(1, {{kWorker0, "10.1.2.3:7"}}, ready_.Done());
    peer_ = std::make_unique<PeerProcess>(server_.address());
    if (!peer_->stands()) {
      GTEST_SKIP() << "Debian's python3-grpcio is missing";
    }
    ASSERT_TRUE(ready_.WaitFor(1).front().ok());
    // More than windows and sockets take: the rest stays with gRPC and the kernel.
    body_.resize(64 << 20);
    server_.Send(kWorker0, {}, {body_.data(), static_cast<Bytes>(body_.size())}, sent_.Done());
  }

  std::vector<std::byte> body_;  // outlives the server, which may be sending it
  Outcomes ready_;
  Outcomes sent_;
  GrpcNode server_{kServer0};
  std::unique_ptr<PeerProcess> peer_;
};

TEST_F(GrpcPeerTest, AKilledProcessIsLostAtOnce) {
  peer_->Signal(SIGKILL);
  const auto lost = server_.sink().lost.WaitFor([](const auto& all) { return !all.empty(); });
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].first, kWorker0);
  EXPECT_THAT(MessageOf(lost[0].second), HasSubstr("worker 0 at 10.1.2.3:7: "));
  const std::vector<absl::Status> sent = sent_.WaitFor(1);
  EXPECT_EQ(sent[0].code(), absl::StatusCode::kUnavailable) << sent[0];
}

TEST_F(GrpcPeerTest, AFrozenProcessDoesNotKeepTheBytesAfterAbort) {
  peer_->Signal(SIGSTOP);
  server_.AwaitStandstill(kWorker0);
  server_.Abort(Aborted("worker 0 fell silent"));
  EXPECT_EQ(sent_.WaitFor(1).front(), Aborted("worker 0 fell silent"));
}

TEST_F(GrpcPeerTest, AFrozenProcessIsLostInTheEnd) {
  peer_->Signal(SIGSTOP);
  const auto lost = server_.sink().lost.WaitFor([](const auto& all) { return !all.empty(); });
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(sent_.WaitFor(1).front().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace ranklab::transport
