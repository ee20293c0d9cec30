#include "worker/record_messages.h"

#include "compute/device.h"
#include "worker/network_account.h"

namespace ranklab::worker {

v1::StepRow ToMessage(const experiment::StepRecord& record, const TraceBuffer::Taken& trace,
                      Nanos clock_offset) {
  const auto at = [clock_offset](Nanos instant) { return (instant + clock_offset).count(); };
  v1::StepRow row;
  row.set_step(record.step);
  row.set_epoch(record.epoch);
  row.set_samples(record.samples);
  row.set_loss_sum(record.loss_sum);
  row.set_weight(record.weight);
  row.set_loss_scale(record.loss_scale);
  row.set_skipped(record.skipped);
  row.set_begins_ns(at(record.begins));
  row.set_step_ns(record.step_time.count());
  row.set_input_ns(record.input.count());
  row.set_forward_ns(record.forward.count());
  row.set_backward_ns(record.backward.count());
  row.set_exposed_ns(record.exposed.count());
  row.set_optimizer_ns(record.optimizer.count());
  row.set_staleness(record.staleness);
  row.set_bytes_sent(record.bytes_sent);
  row.set_bytes_received(record.bytes_received);
  row.set_lateness_ns(record.lateness.count());
  if (record.hidden) {
    row.set_hidden_ns(record.hidden->count());
  }
  for (const Span& span : trace.spans) {
    v1::Span& out = *row.add_spans();
    out.set_track(static_cast<std::uint32_t>(span.track));
    out.set_name(span.name);
    out.set_begins_ns(at(span.begins));
    out.set_ends_ns(at(span.ends));
    out.set_bytes(span.bytes);
    if (span.server >= 0) {
      out.set_server(span.server);
    }
    if (span.bucket >= 0) {
      out.set_bucket(span.bucket);
    }
  }
  for (const CollectiveSpan& span : trace.collectives) {
    v1::CollectiveSpan& out = *row.add_collectives();
    out.set_group(span.group);
    out.set_sequence(span.sequence);
    out.set_algorithm(span.algorithm);
    out.set_bucket(span.bucket);
    out.set_bytes(span.bytes);
    out.set_entered_ns(at(span.entered));
    out.set_first_byte_in_ns(at(span.first_byte_in));
    out.set_last_byte_out_ns(at(span.last_byte_out));
    out.set_left_ns(at(span.left));
  }
  for (const CounterSample& sample : trace.counters) {
    v1::CounterSample& out = *row.add_counters();
    out.set_name(sample.name);
    out.set_value(sample.value);
    out.set_when_ns(at(sample.when));
  }
  return row;
}

experiment::StepRecord FromMessage(const v1::StepRow& row) {
  experiment::StepRecord record;
  record.step = row.step();
  record.epoch = row.epoch();
  record.samples = row.samples();
  record.loss_sum = row.loss_sum();
  record.weight = row.weight();
  record.loss_scale = row.loss_scale();
  record.skipped = row.skipped();
  record.begins = Nanos(row.begins_ns());
  record.step_time = Nanos(row.step_ns());
  record.input = Nanos(row.input_ns());
  record.forward = Nanos(row.forward_ns());
  record.backward = Nanos(row.backward_ns());
  record.exposed = Nanos(row.exposed_ns());
  record.optimizer = Nanos(row.optimizer_ns());
  record.lateness = Nanos(row.lateness_ns());
  if (row.has_hidden_ns()) {
    record.hidden = Nanos(row.hidden_ns());
  }
  record.staleness = row.staleness();
  record.bytes_sent = row.bytes_sent();
  record.bytes_received = row.bytes_received();
  return record;
}

void AddTo(v1::CellResult& message, const TrainingResult& result) {
  message.set_param_hash(result.param_hash);
  message.set_final_loss(result.final_loss);
  message.set_test_loss(result.test_loss);
  message.set_accuracy(result.accuracy);
  message.set_samples(result.samples);
  message.set_passes(result.passes);
  message.set_steps(result.steps);
  message.set_matrix_flops(result.matrix_flops);
  message.set_native_compute_ns(result.native.compute.count());
  message.set_native_exchange_ns(result.native.exchange.count());
  for (const compute::MemoryCount& count : result.memory) {
    v1::MemoryUse& use = *message.add_memory();
    use.set_kind(std::string(compute::NameOf(count.kind)));
    use.set_now_bytes(count.now);
    use.set_peak_bytes(count.peak);
    if (const auto& predicted = result.predicted_memory.at(static_cast<std::size_t>(count.kind))) {
      use.set_predicted_bytes(*predicted);
    }
  }
}

void AddTo(v1::CellResult& message, const Network::Report& report, const std::string& transport) {
  for (const auto& [peer, counters] : report.connections) {
    v1::Connection& connection = *message.add_connections();
    connection.set_peer_role(peer.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SERVER);
    connection.set_peer_rank(peer.rank);
    connection.set_body_sent(counters.body_sent);
    connection.set_body_received(counters.body_received);
    connection.set_wire_sent(counters.wire_sent);
    connection.set_wire_received(counters.wire_received);
    connection.set_messages_sent(counters.messages_sent);
    connection.set_messages_received(counters.messages_received);
    connection.set_transport(transport);
  }
  v1::ShapeReport& shape = *message.mutable_shape();
  shape.set_messages(report.shape.messages);
  shape.set_could_not_keep_up(report.shape.could_not_keep_up);
  for (const std::int64_t count : report.shape.lateness_log2_us) {
    shape.add_lateness_log2_us(count);
  }
  shape.set_lateness_max_ns(report.shape.lateness_max.count());
  shape.set_achieved_bandwidth_median(report.shape.achieved_bandwidth_median);
  shape.set_achieved_bandwidth_p90(report.shape.achieved_bandwidth_p90);
  shape.set_latency_median_ns(report.shape.latency_median.count());
  shape.set_latency_p90_ns(report.shape.latency_p90.count());
  shape.set_bandwidth_samples(report.shape.bandwidth_samples);
  shape.set_latency_samples(report.shape.latency_samples);
}

void AddAccount(v1::CellResult& message, const fabric::LinkSpec& port, Bytes claimed,
                const Network::Report& report) {
  const fabric::NetworkVerdict verdict = Judge(port, claimed, report);
  v1::NetworkAccount& account = *message.mutable_account();
  account.set_held(verdict.held());
  for (const std::string& finding : verdict.findings) {
    account.add_findings(finding);
  }
  account.set_asked_bandwidth(port.bandwidth.bytes_per_second);
  account.set_asked_latency_ns(port.alpha.count());
  account.set_body_claimed(claimed);
  Bytes received = 0;
  for (const auto& [peer, counters] : report.connections) {
    received += counters.body_received;
  }
  account.set_body_received(received);
}

namespace {

double Seconds(std::int64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

experiment::NetworkRecord NetworkRecordOf(const v1::CellResult& result, Endpoint self) {
  experiment::NetworkRecord record;
  record.endpoint = NameOf(self);
  for (const v1::Connection& connection : result.connections()) {
    const Endpoint peer{connection.peer_role() == v1::ROLE_WORKER ? Role::kWorker : Role::kServer,
                        connection.peer_rank()};
    record.connections.push_back({.peer = NameOf(peer),
                                  .body_sent = connection.body_sent(),
                                  .body_received = connection.body_received(),
                                  .wire_sent = connection.wire_sent(),
                                  .wire_received = connection.wire_received(),
                                  .messages_sent = connection.messages_sent(),
                                  .messages_received = connection.messages_received()});
  }
  record.bandwidth_median = result.shape().achieved_bandwidth_median();
  record.bandwidth_p90 = result.shape().achieved_bandwidth_p90();
  record.latency_median = Seconds(result.shape().latency_median_ns());
  record.latency_p90 = Seconds(result.shape().latency_p90_ns());
  record.clock_offset = Seconds(result.clock_offset_ns());
  record.clock_residual = Seconds(result.clock_residual_ns());
  if (result.has_account()) {
    const v1::NetworkAccount& account = result.account();
    record.judged = true;
    record.held = account.held();
    record.findings.assign(account.findings().begin(), account.findings().end());
    record.asked_bandwidth = account.asked_bandwidth();
    record.asked_latency = Seconds(account.asked_latency_ns());
    record.body_received = account.body_received();
    record.body_claimed = account.body_claimed();
  }
  return record;
}

}  // namespace

experiment::WorkerRecord WorkerRecordOf(const v1::CellResult& result, Rank rank) {
  experiment::WorkerRecord record;
  record.param_hash = result.param_hash();
  record.final_loss = result.final_loss();
  record.test_loss = result.test_loss();
  record.loss_floor = result.loss_floor();
  record.accuracy = result.accuracy();
  record.passes = result.passes();
  record.samples = result.samples();
  record.steps = result.steps();
  record.messages = result.shape().messages();
  record.could_not_keep_up = result.shape().could_not_keep_up();
  record.lateness_log2_us.assign(result.shape().lateness_log2_us().begin(),
                                 result.shape().lateness_log2_us().end());
  record.matrix_flops = result.matrix_flops();
  record.network = NetworkRecordOf(result, {Role::kWorker, rank});
  for (const v1::MemoryUse& use : result.memory()) {
    experiment::MemoryRecord& memory = record.memory.emplace_back();
    memory = {.rank = rank, .kind = use.kind(), .now = use.now_bytes(), .peak = use.peak_bytes()};
    if (use.has_predicted_bytes()) {
      memory.predicted = use.predicted_bytes();
    }
  }
  return record;
}

experiment::ServerRecord ServerRecordOf(const v1::CellResult& result, Rank rank, int workers) {
  experiment::ServerRecord record;
  record.network = NetworkRecordOf(result, {Role::kServer, rank});
  record.bytes_pushed = result.bytes_pushed();
  record.bytes_pulled = result.bytes_pulled();
  record.busy = Nanos(result.busy_ns());
  record.parked_pulls = result.parked_pulls();
  record.updates = result.updates();
  record.staleness.resize(static_cast<std::size_t>(workers));
  for (const v1::StalenessCount& count : result.staleness()) {
    if (count.worker() >= 0 && count.worker() < workers) {
      record.staleness[static_cast<std::size_t>(count.worker())][count.staleness()] +=
          count.reads();
    }
  }
  return record;
}

}  // namespace ranklab::worker
