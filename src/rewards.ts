// espalier/rewards: ways to score, filters, and what weighs.

import './offers.ts'

export type { Credit } from './base/core/credit.ts'
export type { Dropped, Filter, Sink, Unscored, Verdicts, Weighted } from './base/core/group.ts'
export type { LeafWeighting } from './base/math/credit.ts'
export { openFilter } from './engine/filters/registry.ts'
export { exactMatch } from './engine/rewards/exact-match.ts'
export { f1 } from './engine/rewards/f1.ts'
export { format } from './engine/rewards/format.ts'
export { judge } from './engine/rewards/judge.ts'
export { numberMatch } from './engine/rewards/number-match.ts'
export { type ScorerLike, scorer } from './engine/rewards/scorer.ts'
export { assertion, type TrajectoryAssertion } from './engine/rewards/trajectory.ts'
export { type OffPolicy, readImportance, weighImportance } from './engine/weigh/importance.ts'
