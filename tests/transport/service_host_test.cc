// The process's gRPC server, seen by clients of others.
#include "transport/grpc/service_host.h"

#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "core/status.h"
#include "tests/transport/grpc_cluster.h"
#include "transport/grpc/health_check.h"

namespace ranklab::transport {
namespace {

using testing::HasSubstr;

struct Output {
  int exit_code = 0;
  std::string text;  // standard output and error
};

Output RunCommand(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  RANKLAB_CHECK(pipe != nullptr, "cannot run %s", command);
  char buffer[4096];
  while (const std::size_t size = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.text.append(buffer, size);
  }
  output.exit_code = WEXITSTATUS(pclose(pipe));
  return output;
}

constexpr int kPackagesMissing = 77;
constexpr char kForeignClient[] = "/usr/bin/python3 tests/cluster/foreign_client.py ";

TEST(ServiceHost, AnswersHealthChecksAndReflectionOfAForeignClient) {
  GrpcNode node({Role::kServer, 0});
  const Output output =
      RunCommand(kForeignClient + node.address() + " --service ranklab.v1.TensorWire");
  if (output.exit_code == kPackagesMissing) {
    GTEST_SKIP() << output.text;
  }
  EXPECT_EQ(output.exit_code, 0) << output.text;
  EXPECT_THAT(output.text, HasSubstr("health: SERVING"));
  EXPECT_THAT(output.text, HasSubstr("ranklab.v1.TensorWire: Stream"));
}

TEST(ServiceHost, AForeignClientNoticesWhatIsNotThere) {
  GrpcNode node({Role::kServer, 0});
  const Output no_service =
      RunCommand(kForeignClient + node.address() + " --service ranklab.v1.Nobody");
  if (no_service.exit_code == kPackagesMissing) {
    GTEST_SKIP() << no_service.text;
  }
  EXPECT_EQ(no_service.exit_code, 1);
  EXPECT_THAT(no_service.text, HasSubstr("not ranklab.v1.Nobody"));
  const Output no_method =
      RunCommand(kForeignClient + node.address() + " --call ranklab.v1.TensorWire/Nothing");
  EXPECT_EQ(no_method.exit_code, 1);
  EXPECT_THAT(no_method.text, HasSubstr("ranklab.v1.TensorWire has no method Nothing"));
}

TEST(ServiceHost, HealthIsWhatItWasSetTo) {
  const auto host = ServiceHost::Start({.address = "127.0.0.1:0", .services = {}});
  ASSERT_TRUE(host.ok()) << host.status();
  const std::string address = "127.0.0.1:" + std::to_string((*host)->port());
  constexpr Nanos kTimeout = std::chrono::seconds(10);
  EXPECT_EQ(*AskWhetherServing(address, kTimeout), true);
  (*host)->SetServing(false);
  EXPECT_EQ(*AskWhetherServing(address, kTimeout), false);
  (*host)->SetServing(true);
  EXPECT_EQ(*AskWhetherServing(address, kTimeout), true);
  (*host)->Shutdown(Nanos(0));
  const auto nobody = AskWhetherServing(address, std::chrono::milliseconds(500));
  EXPECT_EQ(nobody.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(nobody.status()), HasSubstr(address));
}

TEST(ServiceHost, ATakenPortIsAnErrorThatSaysWhatToDo) {
  const auto first = ServiceHost::Start({.address = "127.0.0.1:0", .services = {}});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string port = std::to_string((*first)->port());
  for (const char* host : {"127.0.0.1:", "0.0.0.0:", "localhost:"}) {
    const auto second = ServiceHost::Start({.address = host + port, .services = {}});
    ASSERT_FALSE(second.ok()) << host;
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
    EXPECT_THAT(MessageOf(second.status()), HasSubstr("port " + port));
    EXPECT_THAT(MessageOf(second.status()), HasSubstr("choose another port, or port 0"));
  }
}

TEST(ServiceHost, APortIsFreeAgainAfterShutdown) {
  auto first = ServiceHost::Start({.address = "127.0.0.1:0", .services = {}});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  (*first)->Shutdown(Nanos(0));
  (*first)->Shutdown(Nanos(0));  // again does no harm
  const auto second = ServiceHost::Start({.address = address, .services = {}});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST(ServiceHost, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "127.0.0.1", "127.0.0.1:", ":7070", "127.0.0.1:http",
                              "127.0.0.1:70700", "127.0.0.1:-1"}) {
    const auto host = ServiceHost::Start({.address = address, .services = {}});
    ASSERT_FALSE(host.ok()) << address;
    EXPECT_EQ(host.status().code(), absl::StatusCode::kInvalidArgument) << host.status();
    EXPECT_THAT(MessageOf(host.status()), HasSubstr("0.0.0.0:7070"));
  }
}

TEST(ServiceHost, RefusesAnAddressOfAnotherMachine) {
  const auto host = ServiceHost::Start({.address = "192.0.2.1:0", .services = {}});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.status().code(), absl::StatusCode::kInvalidArgument) << host.status();
  EXPECT_THAT(MessageOf(host.status()), HasSubstr("192.0.2.1 is not an address of this machine"));
}

TEST(ServiceHost, ShutsDownUnderAnOpenStreamThoughItsLoopHasStopped) {
  GrpcNode worker({Role::kWorker, 0});
  Outcomes ready;
  LiveLoop loop;
  GrpcPort port(loop);
  auto host = ServiceHost::Start({.address = "127.0.0.1:0", .services = {&port.service()}});
  ASSERT_TRUE(host.ok()) << host.status();
  const std::string address = "127.0.0.1:" + std::to_string((*host)->port());
  RecordingSink sink;
  std::unique_ptr<Wire> wire;
  loop.RunAndWait([&] {
    wire = port.Open({.self = {Role::kServer, 0},
                      .generation = 1,
                      .secret = GrpcNode::kSecret,
                      .peers = {worker.AsPeer()},
                      .deadline = loop.Now() + absl::ToChronoNanoseconds(kSoon)},
                     ready.Done());
    wire->Deliver(sink);
  });
  worker.Open(1, {{{Role::kServer, 0}, address}}, ready.Done());
  ready.WaitFor(2);
  loop.Stop();
  (*host)->Shutdown(Nanos(0));
  worker.sink().lost.WaitFor([](const auto& all) { return all.size() == 1; });
}

}  // namespace
}  // namespace ranklab::transport
