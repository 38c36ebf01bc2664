// espalier/policies: ways to sample and to speak, and the strategies that walk with them.

import './offers.ts'

export {
  type InsideWeights,
  type PolicyCapabilities,
  PromptTooLong,
  plainCapabilities,
  type Sample,
  type SampleRequest,
  type Sampling,
} from './base/core/policy.ts'
export {
  type GivenSegment,
  type SampledSegment,
  type Segment,
  sampled,
} from './base/core/segment.ts'
export type { Speaker } from './base/core/speaker.ts'
export { openCapture } from './engine/capture/capture.ts'
export type { Capture, ChatAnswer, ChatRequest } from './engine/capture/contract.ts'
export { scripted } from './engine/policies/scripted.ts'
export { chatSpeaker, speakerOf } from './engine/policies/speaker.ts'
export type { BranchPolicy } from './engine/rollout/branch.ts'
export { openBranchPolicy } from './engine/rollout/branches/registry.ts'
export { rollChain } from './engine/rollout/chain.ts'
export { rollSteps } from './engine/rollout/step.ts'
export { rollTree } from './engine/rollout/tree.ts'
