#include "cli/member_process.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <grpcpp/impl/service_type.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/address.h"
#include "cli/build_id.h"
#include "cli/describe_services.h"
#include "cli/exit_code.h"
#include "cli/server_member.h"
#include "cli/signals.h"
#include "coordinator/host_clock.h"
#include "coordinator/member_session.h"
#include "core/log.h"
#include "core/status.h"
#include "core/status_latch.h"
#include "transport/grpc/grpc_port.h"
#include "transport/grpc/service_host.h"
#include "transport/tcp/live_loop.h"
#include "transport/tcp/tcp_port.h"
#include "worker/member.h"
#include "worker/worker.h"

namespace ranklab::cli {
namespace {

std::string HostName() {
  utsname name{};
  return uname(&name) == 0 ? name.nodename : "unknown";
}

std::uint64_t Incarnation(const EventLoop& loop) {
  return static_cast<std::uint64_t>(loop.Now().count()) ^
         (static_cast<std::uint64_t>(getpid()) << 48U);
}

// Everything a member process owns, in the order it is made.
class MemberProcess {
 public:
  explicit MemberProcess(const MemberProcessOptions& options) : options_(options) {}

  int Run() {
    if (const absl::Status listening = Listen(); !listening.ok()) {
      return Fail(listening);
    }
    Join();
    SignalWatcher signals([this](int) { End(Cancelled(), kLostPeer); });
    member_->Serve();
    Leave();
    const absl::Status why = ended_.Wait(std::chrono::seconds(5), "the end of the session");
    host_->Shutdown(std::chrono::milliseconds(200));
    loop_.Stop();
    const bool told_by_parent = options_.no_last_word && absl::IsUnavailable(why);
    if (!why.ok() && !absl::IsCancelled(why) && !told_by_parent) {
      return Fail(why);
    }
    return exit_code_;
  }

 private:
  static absl::Status Cancelled() { return absl::CancelledError("interrupted"); }

  absl::Status Listen() {
    const std::string host = HostOf(options_.listen);
    ASSIGN_OR_RETURN(tcp_port_, transport::TcpPort::Listen(
                                    loop_, absl::StrFormat("%s:%d", host, options_.tcp_port)));
    const bool is_worker = options_.role == Role::kWorker;
    worker::MemberWork& work = is_worker ? static_cast<worker::MemberWork&>(worker_) : server_;
    member_ =
        std::make_unique<worker::Member>(loop_, worker::NetworkPorts{*tcp_port_, grpc_port_}, work);
    describe_ = is_worker ? MakeWorkerService([this] { return DescribeWorker(); })
                          : MakeParameterServerService([this] { return DescribeServer(); });
    ASSIGN_OR_RETURN(host_, transport::ServiceHost::Start(
                                {.address = options_.listen,
                                 .services = {describe_.get(), &grpc_port_.service()}}));
    host_->SetServing(false);  // until it is in the pool
    grpc_port_.SetPort(host_->port());
    return absl::OkStatus();
  }

  void Join() {
    coordinator::SessionOptions session;
    session.coordinator = options_.coordinator;
    session.join_timeout = options_.join_timeout;
    session.clock = coordinator::HostClock();
    v1::JoinRequest& join = session.join;
    join.set_role(options_.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER);
    join.set_host(
        AdvertisedHost(options_.advertise, options_.listen, options_.coordinator, HostName()));
    join.set_grpc_port(static_cast<std::uint32_t>(host_->port()));
    join.set_tcp_port(static_cast<std::uint32_t>(tcp_port_->port()));
    join.set_incarnation(Incarnation(loop_));
    if (options_.rank.has_value()) {
      join.set_wanted_rank(*options_.rank);
    }
    join.set_launched(options_.launched);
    join.set_build(kBuild);
    join.set_cores(std::thread::hardware_concurrency());
    join.set_loopback(coordinator::HostLoopback());
    join.set_once(options_.once);
    worker::Member* member = member_.get();
    coordinator::SessionEvents events;
    events.joined = [this](std::uint64_t id) {
      Log(LogLevel::kInfo, "joined as member %d", id);
      host_->SetServing(true);
    };
    events.assigned = [member](const v1::Assignment& work) { member->Assigned(work); };
    events.go = [member](std::uint32_t generation) { member->Go(generation); };
    events.released = [member](const v1::BarrierRelease& barrier) { member->Released(barrier); };
    events.inject = [member](const v1::Injection& injection) { member->Inject(injection); };
    events.gone = [member](const v1::MemberGone& gone) { member->Gone(gone); };
    events.aborted = [member](const v1::AbortGeneration& abort) { member->Aborted(abort); };
    events.ended = [this](absl::Status why, int code) { End(why, code); };
    session_ =
        std::make_unique<coordinator::MemberSession>(loop_, std::move(session), std::move(events));
    member_->UseSession(*session_);
  }

  // From any thread; the first call counts.
  void End(const absl::Status& why, int exit_code) {
    if (!ended_.is_set()) {
      exit_code_ = exit_code;
    }
    ended_.Set(why);
    member_->End();
  }

  void Leave() {
    loop_.RunAndWait([this] { session_.reset(); });
  }

  v1::WorkerDescription DescribeWorker() const {
    const worker::Member::Activity activity = member_->activity();
    v1::WorkerDescription description;
    description.set_build(kBuild);
    description.set_generation(activity.generation);
    description.set_rank(activity.rank);
    description.set_step(activity.step);
    description.set_phase(activity.phase);
    description.set_device("cpu");
    return description;
  }

  v1::ServerDescription DescribeServer() const {
    const worker::Member::Activity activity = member_->activity();
    const ServerMember::Holding holding = server_.holding();
    v1::ServerDescription description;
    description.set_build(kBuild);
    description.set_generation(activity.generation);
    description.set_rank(activity.rank);
    description.set_begin(holding.range.begin);
    description.set_end(holding.range.end);
    description.set_version(holding.version);
    description.set_bytes_pushed(holding.bytes_pushed);
    description.set_bytes_pulled(holding.bytes_pulled);
    for (const Step clock : holding.clocks) {
      description.add_clocks(clock);
    }
    return description;
  }

  const MemberProcessOptions options_;
  transport::LiveLoop loop_;
  worker::Worker worker_;
  ServerMember server_;
  std::unique_ptr<transport::TcpPort> tcp_port_;
  transport::GrpcPort grpc_port_{loop_};
  std::unique_ptr<worker::Member> member_;
  std::unique_ptr<grpc::Service> describe_;
  std::unique_ptr<transport::ServiceHost> host_;
  std::unique_ptr<coordinator::MemberSession> session_;
  StatusLatch ended_;
  std::atomic<int> exit_code_{0};
};

}  // namespace

int RunMemberProcess(const MemberProcessOptions& options) {
  SetLogName(options.role == Role::kWorker ? "worker" : "server");
  return MemberProcess(options).Run();
}

}  // namespace ranklab::cli
