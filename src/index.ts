// The front door: what Espalier promises, by room.

// condensers: ways to shorten a context
export { type ChunkOptions, chunkText } from './condensers/chunk.ts'
export { keepLastTurns } from './condensers/keep-last-turns.ts'
export { keywordCondenser } from './condensers/keyword.ts'
export { modelCondenser } from './condensers/model.ts'
export { measureLoss } from './condensers/probe.ts'
export { openCondenser } from './condensers/registry.ts'
export { selfCondenser } from './condensers/self.ts'
export { trimToolOutput } from './condensers/trim-tool-output.ts'
// core: nouns and contracts
export type { Call } from './core/call.ts'
export type {
  Condensation,
  CondenseCall,
  Condensed,
  Condenser,
  Condensing,
} from './core/condenser.ts'
export type { Credit, LeafWeighting } from './core/credit.ts'
export type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from './core/environment.ts'
export { type Boundary, Failure } from './core/failure.ts'
export type { Dropped, Filter, Group, Scored, Unscored, Verdicts, Weighted } from './core/group.ts'
export type { GroupId, Json, NonEmpty, TaskId, TrajectoryId, TreeId } from './core/ids.ts'
export type {
  AssistantMessage,
  CallAttempt,
  Content,
  ContentPart,
  Message,
  Reply,
  ToolCall,
  ToolDefinition,
  ToolMessage,
} from './core/message.ts'
export { describeOutcome, type Outcome } from './core/outcome.ts'
export type { Policy, PolicyCapabilities, Sample, SampleRequest, Sampling } from './core/policy.ts'
export type { History, Renderer } from './core/renderer.ts'
export type { Reward, RewardFunction, RewardInput, RewardPart } from './core/reward.ts'
export { type Row, rowsOf } from './core/row.ts'
export type { GivenSegment, SampledSegment, Segment } from './core/segment.ts'
export type { Sink } from './core/sink.ts'
export type { Speaker } from './core/speaker.ts'
export type { CallRecord, StandardSchema, Tool } from './core/tool.ts'
export type { Trainer, TrainerStep } from './core/trainer.ts'
export type { Fidelity, Trajectory, Turn } from './core/trajectory.ts'
export { idsTo, pathTo, type Tree } from './core/tree.ts'

// environments: worlds and their tools
export { calculator } from './environments/calculator.ts'
export { desk } from './environments/desk/desk.ts'
export { environment } from './environments/environment.ts'
export { withFork } from './environments/fork.ts'
export { type InterpreterOptions, interpreter } from './environments/interpreter/interpreter.ts'
export { keyValue } from './environments/key-value.ts'
export { openMcpTools } from './environments/mcp.ts'
export { type PassageTask, passages } from './environments/passages.ts'
export { openPool } from './environments/pool.ts'
export { singleTurn } from './environments/single-turn.ts'
export { tool } from './environments/tool.ts'
export { toolLoop } from './environments/tool-loop.ts'
// filters: judges
export { openFilter } from './filters/registry.ts'
// math: numbers in, numbers out
export { spreadAdvantages } from './math/advantage.ts'
export { grpoAdvantages } from './math/advantages/grpo.ts'
export { bootstrapInterval, wilsonInterval } from './math/intervals.ts'
export { ppoLoss } from './math/losses/ppo.ts'
export { passAtK, passHatK } from './math/pass-at-k.ts'
export { random, seedOf } from './math/random.ts'
export { advantageNamed, advantageNames, lossNamed, lossNames } from './math/registry.ts'
// policies: ways to sample and to speak
export { scripted } from './policies/scripted.ts'
export { chatSpeaker, speakerOf } from './policies/speaker.ts'
// rewards: ways to score
export { exactMatch } from './rewards/exact-match.ts'
export { f1 } from './rewards/f1.ts'
export { format } from './rewards/format.ts'
export { judge } from './rewards/judge.ts'
export { numberMatch } from './rewards/number-match.ts'
// rollout: ways to roll, and where trees branch
export type { BranchPolicy } from './rollout/branch.ts'
export { openBranchPolicy } from './rollout/branches/registry.ts'
export { rollChain } from './rollout/chain.ts'
export { rollSteps } from './rollout/step.ts'
export { rollTree } from './rollout/tree.ts'
// run: the verbs
export type { BudgetLimits } from './run/budget.ts'
export { type Comparison, compareRuns, readByTask } from './run/compare.ts'
export { type Config, defineConfig } from './run/config.ts'
export { type EvaluateOptions, evaluate } from './run/evaluate.ts'
export type { Listen, RunEvent } from './run/events.ts'
export { type Exported, type ExportOptions, exportRun } from './run/export.ts'
export { type RollOptions, roll } from './run/front.ts'
export { importRun } from './run/import.ts'
export type { Evaluated } from './run/measure.ts'
export { openRenderer } from './run/model-source.ts'
export { openPolicy } from './run/open-policy.ts'
export { type RunReport, reportRun } from './run/run-report.ts'
export { openRunReader, type RunReader, type StoredGroup } from './run/store.ts'
export { teach } from './run/teach.ts'
export type { EventRecord } from './run/telemetry/event-record.ts'
export { train } from './run/train.ts'
// text: the border between messages and tokens
export { type OutputParser, openParser, reasoningFormats, toolFormats } from './text/parser.ts'
export type { ModelRenderer } from './text/renderer.ts'
export { openTokenizer, type Tokenizer } from './text/tokenizer.ts'
