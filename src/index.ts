// The front door: what Espalier promises, by room.

// capture: agents that ask the policy themselves
export {
  type AgentCall,
  type AgentDefinition,
  type AgentEnvironment,
  agent,
} from './capture/agent.ts'
export { currentAttempt } from './capture/attempt-context.ts'
export { openCapture } from './capture/capture.ts'
export type { Capture, ChatAnswer, ChatRequest } from './capture/contract.ts'
export type { ModelRenderer } from './chat/renderer.ts'
// cluster: the same run on many machines
export { type ClusterOptions, openCluster } from './cluster/open-cluster.ts'
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
export type { Credit } from './core/credit.ts'
export type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from './core/environment.ts'
export { type Boundary, Failure } from './core/failure.ts'
export type {
  Dropped,
  Filter,
  Group,
  Scored,
  Sink,
  Unscored,
  Verdicts,
  Weighted,
} from './core/group.ts'
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
export {
  type Policy,
  type PolicyCapabilities,
  PromptTooLong,
  plainCapabilities,
  type Sample,
  type SampleRequest,
  type Sampling,
} from './core/policy.ts'
export type { History, Renderer } from './core/renderer.ts'
export type { Reward, RewardFunction, RewardInput, RewardPart } from './core/reward.ts'
export { type Row, rowsOf } from './core/row.ts'
export { type GivenSegment, type SampledSegment, type Segment, sampled } from './core/segment.ts'
export type { Speaker } from './core/speaker.ts'
export type { CallRecord, StandardSchema, Tool } from './core/tool.ts'
export type { Trainer, TrainerStep } from './core/trainer.ts'
export type { Fidelity, Trajectory, Turn } from './core/trajectory.ts'
export { idsTo, pathTo, type Tree } from './core/tree.ts'
// environments: worlds and their tools
export { calculator } from './environments/built-in/calculator.ts'
export { keyValue } from './environments/built-in/key-value.ts'
export { type PassageTask, passages } from './environments/built-in/passages.ts'
export { singleTurn } from './environments/built-in/single-turn.ts'
export { toolLoop } from './environments/built-in/tool-loop.ts'
export { desk } from './environments/desk/desk.ts'
export { environment } from './environments/environment.ts'
export { withFork } from './environments/fork.ts'
export { type HarborTask, harbor, solveHarbor } from './environments/harbor/harbor.ts'
export { type InterpreterOptions, interpreter } from './environments/interpreter/interpreter.ts'
export { type OpenEnvOptions, openOpenEnv } from './environments/openenv/openenv.ts'
export { openPool } from './environments/pool.ts'
export { openPython, type PythonOptions } from './environments/python-bridge/python.ts'
export { type RepairTask, repair } from './environments/repair/repair.ts'
export { openMcpTools } from './environments/tools/mcp.ts'
export { tool } from './environments/tools/tool.ts'
export type { WorkspaceOptions } from './environments/workspace/open.ts'
export { workspaceTools } from './environments/workspace/tools.ts'
export { type Exported, type ExportOptions, exportRun } from './exchange/export.ts'
export { importRun } from './exchange/import.ts'
// filters: judges
export { openFilter } from './filters/registry.ts'
// gateway: agents in any language, by their base URL
export {
  type GatewayOptions,
  gateway,
  type OpenedAttempt,
  type RunningGateway,
} from './gateway/listen.ts'
export type { Secrets } from './gateway/secrets.ts'
export { teach } from './learn/teach.ts'
export { train } from './learn/train.ts'
// math: numbers in, numbers out
export { spreadAdvantages } from './math/advantage.ts'
export { grpoAdvantages } from './math/advantages/grpo.ts'
export type { LeafWeighting } from './math/credit.ts'
export { bootstrapInterval, wilsonInterval } from './math/intervals.ts'
export { ppoLoss } from './math/losses/ppo.ts'
export { passAtK, passHatK } from './math/pass-at-k.ts'
export { random, seedOf } from './math/random.ts'
export { advantageNamed, advantageNames, lossNamed, lossNames } from './math/registry.ts'
export { readByTask } from './measure/compare.ts'
export { type Comparison, compareRuns } from './measure/compare-tasks.ts'
export { type EvaluateOptions, evaluate } from './measure/evaluate.ts'
export type { Evaluated } from './measure/measure.ts'
// parsers, chat: the border between messages and tokens
export { type OutputParser, openParser, reasoningFormats, toolFormats } from './parsers/parser.ts'
// policies: ways to sample and to speak
export { scripted } from './policies/scripted.ts'
export { chatSpeaker, speakerOf } from './policies/speaker.ts'
// rewards: ways to score
export { exactMatch } from './rewards/exact-match.ts'
export { f1 } from './rewards/f1.ts'
export { format } from './rewards/format.ts'
export { judge } from './rewards/judge.ts'
export { numberMatch } from './rewards/number-match.ts'
export { type ScorerLike, scorer } from './rewards/scorer.ts'
export { assertion, type TrajectoryAssertion } from './rewards/trajectory.ts'
// rollout: ways to roll, and where trees branch
export type { BranchPolicy } from './rollout/branch.ts'
export { openBranchPolicy } from './rollout/branches/registry.ts'
export { rollChain } from './rollout/chain.ts'
export { rollSteps } from './rollout/step.ts'
export { rollTree } from './rollout/tree.ts'
// run: the verbs
export type { BudgetLimits } from './run/budget.ts'
export type { Elsewhere, Returned, Work } from './run/elsewhere.ts'
export { roll } from './run/roll.ts'
export type { OpenElsewhere, RollOptions } from './run/roll-options.ts'
export { type Config, defineConfig } from './settings/define-config.ts'
export { openRenderer } from './settings/model-source.ts'
export { openPolicy } from './settings/open-policy.ts'
export type { GroupRecord, MemberRecord } from './store/group-record.ts'
export { openRunReader, type RunReader, type StoredGroup } from './store/store.ts'
export { openTokenizer, type Tokenizer } from './tokenizers/tokenizer.ts'
export type { Listen, RunEvent } from './watch/events.ts'
export { type RunReport, reportRun } from './watch/run-report.ts'
export type { EventRecord } from './watch/telemetry/event-record.ts'
export { type OffPolicy, readImportance, weighImportance } from './weigh/importance.ts'
export { containerWorkspaces } from './workspace/container.ts'
// workspace: folders and commands of one attempt
export type {
  Put,
  Workspace,
  WorkspaceLimits,
  WorkspaceSource,
  Workspaces,
} from './workspace/contract.ts'
export { usualFolder, usualLimits } from './workspace/contract.ts'
export { localWorkspaces } from './workspace/local.ts'
export { type RemoteOptions, remoteWorkspaces } from './workspace/remote.ts'
