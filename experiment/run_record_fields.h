// The names of a summary's fields in summary.json: one list for writing and for reading, so that
// the two cannot drift apart. An Archive is called with each name and the field it stands for.
#pragma once

#include "experiment/run_record.h"

namespace ranklab::experiment {

template <typename Archive>
void Describe(Archive& archive, Spread& spread) {
  archive("median", spread.median);
  archive("least", spread.least);
  archive("most", spread.most);
}

template <typename Archive>
void Describe(Archive& archive, RankBreakdown& bar) {
  archive("rank", bar.rank);
  archive("input", bar.input);
  archive("forward", bar.forward);
  archive("backward", bar.backward);
  archive("exposed", bar.exposed);
  archive("optimizer", bar.optimizer);
  archive("other", bar.other);
  archive("hidden", bar.hidden);
  archive("samples_per_second", bar.samples_per_second);
  archive("peak_flops", bar.peak_flops);
  archive("mfu", bar.mfu);
  archive("hfu", bar.hfu);
}

template <typename Archive>
void Describe(Archive& archive, WorkRecord& work) {
  archive("parameters", work.parameters);
  archive("model_flops", work.model_flops);
  archive("hardware_flops", work.hardware_flops);
  archive("tokens", work.tokens);
  archive("formula", work.formula);
  archive("peak_flops", work.peak_flops);
  archive("peak", work.peak);
}

template <typename Archive>
void Describe(Archive& archive, ConnectionRecord& connection) {
  archive("peer", connection.peer);
  archive("body_sent", connection.body_sent);
  archive("body_received", connection.body_received);
  archive("wire_sent", connection.wire_sent);
  archive("wire_received", connection.wire_received);
  archive("messages_sent", connection.messages_sent);
  archive("messages_received", connection.messages_received);
}

template <typename Archive>
void Describe(Archive& archive, NetworkRecord& network) {
  archive("endpoint", network.endpoint);
  archive("connections", network.connections);
  archive("judged", network.judged);
  archive("held", network.held);
  archive("findings", network.findings);
  archive("asked_bandwidth", network.asked_bandwidth);
  archive("bandwidth_median", network.bandwidth_median);
  archive("bandwidth_p90", network.bandwidth_p90);
  archive("asked_latency", network.asked_latency);
  archive("latency_median", network.latency_median);
  archive("latency_p90", network.latency_p90);
  archive("body_received", network.body_received);
  archive("body_claimed", network.body_claimed);
  archive("clock_offset_seconds", network.clock_offset);
  archive("clock_residual_seconds", network.clock_residual);
}

template <typename Archive>
void Describe(Archive& archive, MemoryRecord& memory) {
  archive("rank", memory.rank);
  archive("kind", memory.kind);
  archive("now", memory.now);
  archive("peak", memory.peak);
  archive("predicted", memory.predicted);
}

template <typename Archive>
void Describe(Archive& archive, Finding& finding) {
  archive("code", finding.code);
  archive("cause", finding.cause);
  archive("text", finding.text);
  archive("remedy", finding.remedy);
  archive("severity", finding.severity);
}

template <typename Archive>
void Describe(Archive& archive, CellSummary& cell) {
  archive("part", cell.part);
  archive("cell", cell.cell);
  archive("baseline", cell.baseline);
  archive("settings", cell.settings);
  archive("exchange", cell.exchange);
  archive("transport", cell.transport);
  archive("fabric", cell.fabric);
  archive("workers", cell.workers);
  archive("servers", cell.servers);
  archive("threads", cell.threads);
  archive("seed", cell.seed);
  archive("time_scale", cell.time_scale);
  archive("kind", cell.kind);
  archive("repeats", cell.repeats);
  archive("counted_steps", cell.counted_steps);
  archive("samples_per_second", cell.samples_per_second);
  archive("step_seconds", cell.step_seconds);
  archive("exposed_seconds", cell.exposed_seconds);
  archive("start_up_seconds", cell.start_up_seconds);
  archive("efficiency", cell.efficiency);
  archive("predicted_seconds", cell.predicted_seconds);
  archive("ratio", cell.ratio);
  archive("predicted_exposed_seconds", cell.predicted_exposed_seconds);
  archive("exposed_ratio", cell.exposed_ratio);
  archive("precision", cell.precision);
  archive("wire_dtype", cell.wire_dtype);
  archive("skipped_steps", cell.skipped_steps);
  archive("latency_share", cell.latency_share);
  archive("initial_loss", cell.initial_loss);
  archive("final_loss", cell.final_loss);
  archive("test_loss", cell.test_loss);
  archive("loss_floor", cell.loss_floor);
  archive("accuracy", cell.accuracy);
  archive("param_hashes", cell.param_hashes);
  archive("hash_equal_across_ranks", cell.hash_equal_across_ranks);
  archive("hash_equal_across_repeats", cell.hash_equal_across_repeats);
  archive("work", cell.work);
  archive("breakdown", cell.breakdown);
  archive("loss_curve", cell.loss_curve);
  archive("loss_seconds", cell.loss_seconds);
  archive("staleness", cell.staleness);
  archive("messages", cell.messages);
  archive("could_not_keep_up", cell.could_not_keep_up);
  archive("lateness_log2_us", cell.lateness_log2_us);
  archive("bytes_sent_per_step", cell.bytes_sent_per_step);
  archive("samples_per_rank", cell.samples_per_rank);
  archive("passes_per_rank", cell.passes_per_rank);
  archive("network", cell.network);
  archive("memory", cell.memory);
  archive("findings", cell.findings);
}

template <typename Archive>
void Describe(Archive& archive, ExpectationOutcome& outcome) {
  archive("part", outcome.part);
  archive("text", outcome.text);
  archive("judged", outcome.judged);
  archive("held", outcome.held);
  archive("found", outcome.found);
}

template <typename Archive>
void Describe(Archive& archive, RunSummary& summary) {
  archive("lab", summary.lab);
  archive("question", summary.question);
  archive("verdict", summary.verdict);
  archive("exit_code", summary.exit_code);
  archive("complete", summary.complete);
  archive("build", summary.build);
  archive("lab_hash", summary.lab_hash);
  archive("environment", summary.environment);
  archive("sentences", summary.sentences);
  archive("expectations", summary.expectations);
  archive("cells", summary.cells);
  archive("lab_text", summary.lab_text);
}

}  // namespace ranklab::experiment
