// The front door: the verbs, and the nouns they take and give. Further parts have entries of their own beside it.

import './offers.ts'

export type { Message } from '@espalier/text'
export type { Call } from './base/core/call.ts'
export type {
  Environment,
  OpenCall,
  StepCall,
  Task,
  Transition,
  World,
} from './base/core/environment.ts'
export { type Boundary, Failure } from './base/core/failure.ts'
export type { Group, Scored } from './base/core/group.ts'
export type { Json, NonEmpty, TaskId } from './base/core/ids.ts'
export { describeOutcome, type Outcome } from './base/core/outcome.ts'
export type { Policy } from './base/core/policy.ts'
export type { Reward, RewardFunction, RewardInput, RewardPart } from './base/core/reward.ts'
export type { Tool } from './base/core/tool.ts'
export type { Trainer, TrainerStep } from './base/core/trainer.ts'
export type { Trajectory, Turn } from './base/core/trajectory.ts'
export { type ClusterOptions, openCluster } from './doors/cluster/open-cluster.ts'
export type { GatewayOptions, OpenedAttempt, RunningGateway } from './doors/gateway/listen.ts'
export type { Secrets } from './doors/gateway/secrets.ts'
export {
  type AgentCall,
  type AgentDefinition,
  type AgentEnvironment,
  agent,
} from './engine/capture/agent.ts'
export { currentAttempt } from './engine/capture/attempt-context.ts'
export { environment } from './engine/environments/environment.ts'
export { tool } from './engine/environments/tools/tool.ts'
export type { Conversation } from './run/demonstrations/conversation.ts'
export type { Exported, ExportOptions } from './run/exchange/export.ts'
export type { EvaluateOptions } from './run/measure/evaluate.ts'
export type { Evaluated } from './run/measure/measure.ts'
export type { BudgetLimits } from './run/run/budget.ts'
export type { RollOptions } from './run/run/roll-options.ts'
export { type Config, defineConfig } from './run/settings/define-config.ts'
export type { Listen, RunEvent } from './run/watch/events.ts'
export {
  evaluate,
  exportRun,
  gateway,
  importRun,
  openPolicy,
  roll,
  teach,
  train,
} from './verbs.ts'
