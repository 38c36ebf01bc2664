// The front door: what Espalier promises, by room.

import './offers.ts'

export type {
  AssistantMessage,
  CallAttempt,
  Content,
  ContentPart,
  History,
  Message,
  Renderer,
  Reply,
  ToolCall,
  ToolDefinition,
  ToolMessage,
} from '@espalier/text'
export type { ModelRenderer } from '@espalier/text/chat'
// parsers, chat: the border between messages and tokens
export {
  type OutputParser,
  openParser,
  reasoningFormats,
  toolFormats,
} from '@espalier/text/parsers'
export { openTokenizer, type Tokenizer } from '@espalier/text/tokenizers'
// core: nouns and contracts
export type { Call } from './base/core/call.ts'
export type {
  Condensation,
  CondenseCall,
  Condensed,
  Condenser,
  Condensing,
} from './base/core/condenser.ts'
export type { Credit } from './base/core/credit.ts'
export type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from './base/core/environment.ts'
export { type Boundary, Failure } from './base/core/failure.ts'
export type {
  Dropped,
  Filter,
  Group,
  Scored,
  Sink,
  Unscored,
  Verdicts,
  Weighted,
} from './base/core/group.ts'
export type { GroupId, Json, NonEmpty, TaskId, TrajectoryId, TreeId } from './base/core/ids.ts'
export { describeOutcome, type Outcome } from './base/core/outcome.ts'
export {
  type Policy,
  type PolicyCapabilities,
  PromptTooLong,
  plainCapabilities,
  type Sample,
  type SampleRequest,
  type Sampling,
} from './base/core/policy.ts'
export type { Reward, RewardFunction, RewardInput, RewardPart } from './base/core/reward.ts'
export { type Row, rowsOf } from './base/core/row.ts'
export {
  type GivenSegment,
  type SampledSegment,
  type Segment,
  sampled,
} from './base/core/segment.ts'
export type { Speaker } from './base/core/speaker.ts'
export type { CallRecord, StandardSchema, Tool } from './base/core/tool.ts'
export type { Trainer, TrainerStep } from './base/core/trainer.ts'
export type { Fidelity, Trajectory, Turn } from './base/core/trajectory.ts'
export { idsTo, pathTo, type Tree } from './base/core/tree.ts'
// math: numbers in, numbers out
export { spreadAdvantages } from './base/math/advantage.ts'
export { grpoAdvantages } from './base/math/advantages/grpo.ts'
export type { LeafWeighting } from './base/math/credit.ts'
export { bootstrapInterval, wilsonInterval } from './base/math/intervals.ts'
export { ppoLoss } from './base/math/losses/ppo.ts'
export { passAtK, passHatK } from './base/math/pass-at-k.ts'
export { random, seedOf } from './base/math/random.ts'
export { advantageNamed, advantageNames, lossNamed, lossNames } from './base/math/registry.ts'
// cluster: the same run on many machines
export { type ClusterOptions, openCluster } from './doors/cluster/open-cluster.ts'
// gateway: agents in any language, by their base URL
export {
  type GatewayOptions,
  gateway,
  type OpenedAttempt,
  type RunningGateway,
} from './doors/gateway/listen.ts'
export type { Secrets } from './doors/gateway/secrets.ts'
// capture: agents that ask the policy themselves
export {
  type AgentCall,
  type AgentDefinition,
  type AgentEnvironment,
  agent,
} from './engine/capture/agent.ts'
export { currentAttempt } from './engine/capture/attempt-context.ts'
export { openCapture } from './engine/capture/capture.ts'
export type { Capture, ChatAnswer, ChatRequest } from './engine/capture/contract.ts'
// condensers: ways to shorten a context
export { type ChunkOptions, chunkText } from './engine/condensers/chunk.ts'
export { keepLastTurns } from './engine/condensers/keep-last-turns.ts'
export { keywordCondenser } from './engine/condensers/keyword.ts'
export { modelCondenser } from './engine/condensers/model.ts'
export { measureLoss } from './engine/condensers/probe.ts'
export { openCondenser } from './engine/condensers/registry.ts'
export { selfCondenser } from './engine/condensers/self.ts'
export { trimToolOutput } from './engine/condensers/trim-tool-output.ts'
// environments: worlds and their tools
export { calculator } from './engine/environments/built-in/calculator.ts'
export { keyValue } from './engine/environments/built-in/key-value.ts'
export { type PassageTask, passages } from './engine/environments/built-in/passages.ts'
export { singleTurn } from './engine/environments/built-in/single-turn.ts'
export { toolLoop } from './engine/environments/built-in/tool-loop.ts'
export { desk } from './engine/environments/desk/desk.ts'
export { environment } from './engine/environments/environment.ts'
export { withFork } from './engine/environments/fork.ts'
export { openPool } from './engine/environments/pool.ts'
export { openMcpTools } from './engine/environments/tools/mcp.ts'
export { tool } from './engine/environments/tools/tool.ts'
// filters: judges
export { openFilter } from './engine/filters/registry.ts'
// policies: ways to sample and to speak
export { scripted } from './engine/policies/scripted.ts'
export { chatSpeaker, speakerOf } from './engine/policies/speaker.ts'
// rewards: ways to score
export { exactMatch } from './engine/rewards/exact-match.ts'
export { f1 } from './engine/rewards/f1.ts'
export { format } from './engine/rewards/format.ts'
export { judge } from './engine/rewards/judge.ts'
export { numberMatch } from './engine/rewards/number-match.ts'
export { type ScorerLike, scorer } from './engine/rewards/scorer.ts'
export { assertion, type TrajectoryAssertion } from './engine/rewards/trajectory.ts'
// rollout: ways to roll, and where trees branch
export type { BranchPolicy } from './engine/rollout/branch.ts'
export { openBranchPolicy } from './engine/rollout/branches/registry.ts'
export { rollChain } from './engine/rollout/chain.ts'
export { rollSteps } from './engine/rollout/step.ts'
export { rollTree } from './engine/rollout/tree.ts'
export { type OffPolicy, readImportance, weighImportance } from './engine/weigh/importance.ts'
export { teach } from './learn/learn/teach.ts'
export { train } from './learn/learn/train.ts'
export { type Exported, type ExportOptions, exportRun } from './run/exchange/export.ts'
export { importRun } from './run/exchange/import.ts'
export { readByTask } from './run/measure/compare.ts'
export { type Comparison, compareRuns } from './run/measure/compare-tasks.ts'
export { type EvaluateOptions, evaluate } from './run/measure/evaluate.ts'
export type { Evaluated } from './run/measure/measure.ts'
// run: the verbs
export type { BudgetLimits } from './run/run/budget.ts'
export type { Elsewhere, Returned, Work } from './run/run/elsewhere.ts'
export { roll } from './run/run/roll.ts'
export type { OpenElsewhere, RollOptions } from './run/run/roll-options.ts'
export { type Config, defineConfig } from './run/settings/define-config.ts'
export { openRenderer } from './run/settings/model-source.ts'
export { openPolicy } from './run/settings/open-policy.ts'
export type { GroupRecord, MemberRecord } from './run/store/group-record.ts'
export { openRunReader, type RunReader, type StoredGroup } from './run/store/store.ts'
export type { Listen, RunEvent } from './run/watch/events.ts'
export { type RunReport, reportRun } from './run/watch/run-report.ts'
export type { EventRecord } from './run/watch/telemetry/event-record.ts'
export { type HarborTask, harbor, solveHarbor } from './worlds/harbor/harbor.ts'
export { type InterpreterOptions, interpreter } from './worlds/interpreter/interpreter.ts'
export { type OpenEnvOptions, openOpenEnv } from './worlds/openenv/openenv.ts'
export { openPython, type PythonOptions } from './worlds/python-bridge/python.ts'
export { type RepairTask, repair } from './worlds/repair/repair.ts'
export { containerWorkspaces } from './worlds/workspaces/container.ts'
// workspace: folders and commands of one attempt
export type {
  Put,
  Workspace,
  WorkspaceLimits,
  WorkspaceSource,
  Workspaces,
} from './worlds/workspaces/contract.ts'
export { usualFolder, usualLimits } from './worlds/workspaces/contract.ts'
export { localWorkspaces } from './worlds/workspaces/local.ts'
export { type RemoteOptions, remoteWorkspaces } from './worlds/workspaces/remote.ts'
export type { WorkspaceOptions } from './worlds/workspaces/world/open.ts'
export { workspaceTools } from './worlds/workspaces/world/tools.ts'
