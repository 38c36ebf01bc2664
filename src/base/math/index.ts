/**
 * Numbers in, numbers out: every formula of `docs/reference/mathematics.md`. The functions are pure, work on typed
 * arrays in float64, and refuse what does not fit with both numbers named.
 */
export {
  type Advantages,
  type Key,
  type RewardedTrajectory,
  type SinglePolicy,
  spreadAdvantages,
} from './advantage.ts'
export { bestOfGroupAdvantages } from './advantages/best-of-group.ts'
export { type GigpoSettings, gigpoAdvantages, sharedAnchorShare } from './advantages/gigpo.ts'
export { type GpgAdvantageSettings, gpgAdvantages } from './advantages/gpg.ts'
export { drGrpoAdvantages, type GrpoAdvantageSettings, grpoAdvantages } from './advantages/grpo.ts'
export { opoAdvantages } from './advantages/opo.ts'
export {
  placeRewards,
  type ReinforceBaselineSettings,
  type ReinforceSettings,
  type ReinforceTokens,
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
  tokenReturns,
} from './advantages/reinforce-plus-plus.ts'
export { rlooAdvantages } from './advantages/rloo.ts'
export { type TreeGrpoSettings, treeGrpoAdvantages } from './advantages/tree-grpo.ts'
export { type TreeNode, treeRlAdvantages } from './advantages/tree-rl.ts'
export {
  discountedReturns,
  type RewardedTurn,
  shareReward,
  sharingNames,
  type TurnLevelSettings,
  turnLevelAdvantages,
} from './advantages/turn-level.ts'
export { type Aggregation, aggregationNames, tokenShares } from './aggregation.ts'
export { attemptMeans, type Ending, succeeds } from './attempts.ts'
export {
  eachTrained,
  type Normalisers,
  normalisers,
  offsetsOf,
  rowCount,
  selectRows,
  type TokenBatch,
  type TokenNumbers,
  whiten,
} from './batch.ts'
export {
  type Cluster,
  clusteredChange,
  clusteredInterval,
  meanInterval,
  rewardInterval,
} from './bounds/clustered.ts'
export { type Credit, creditOf, type LeafWeighting, leafWeight, leafWeightNames } from './credit.ts'
export {
  branchProbability,
  type EntropyCoefficient,
  type EntropyTarget,
  entropyOfLogits,
  nextEntropyCoefficient,
} from './entropy.ts'
export {
  type Importance,
  type ImportanceSettings,
  importanceWeights,
  type StalenessSettings,
  stalenessWeights,
  type TwoEngines,
} from './importance.ts'
export {
  type BootstrapOptions,
  bootstrapInterval,
  type Interval,
  wilsonInterval,
} from './intervals.ts'
export {
  boundedK3,
  type KlEstimator,
  type KlPenalty,
  type KlTarget,
  type KlTerm,
  klNames,
  klPenalty,
  klTerm,
  nextKlCoefficient,
  penalisedRewards,
} from './kl.ts'
export type { LossResult, LossSettings, PolicyTokens } from './loss.ts'
export { type CispoSettings, cispoLoss } from './losses/cispo.ts'
export {
  type CrossEntropySettings,
  crossEntropyLoss,
  type SupervisedTokens,
} from './losses/cross-entropy.ts'
export {
  type DpoResult,
  type DpoSettings,
  dpoLoss,
  type Preference,
  type PreferenceTokens,
} from './losses/dpo.ts'
export { type GmpoSettings, gmpoLoss } from './losses/gmpo.ts'
export { gpgLoss } from './losses/gpg.ts'
export { type GspoSettings, gspoLoss } from './losses/gspo.ts'
export {
  bnpoLoss,
  type ClipSettings,
  type DrGrpoSettings,
  drGrpoLoss,
  type GrpoSettings,
  grpoLoss,
  type PpoSettings,
  ppoLoss,
} from './losses/ppo.ts'
export { type SapoSettings, sapoLoss } from './losses/sapo.ts'
export {
  type DivergentToken,
  type LogprobBasis,
  type MeasuredTokens,
  type MetricSettings,
  type PolicyChange,
  type PolicyMetrics,
  policyMetrics,
} from './metrics.ts'
export { type Mismatch, mismatch } from './mismatch.ts'
export {
  type OracleLossOptions,
  type OracleSettings,
  type OracleTokens,
  oracleBonus,
  oracleLoss,
  withOracle,
} from './oracle.ts'
export { type OverlongSettings, overlongPenalty } from './overlong.ts'
export { passAtK, passAtKOf, passHatK, passHatKOf } from './pass-at-k.ts'
export { pathLoss, pathTokens, type RowNumbers, scatterPaths, type TokenPaths } from './paths.ts'
export {
  childSeed,
  pick,
  type Random,
  random,
  randomAt,
  type Seed,
  seedOf,
  shuffle,
} from './random.ts'
export {
  type AdvantageEstimator,
  type AdvantageName,
  advantageNamed,
  advantageNames,
  aggregationNamed,
  type LossName,
  lossNamed,
  lossNames,
  type NamedOptions,
  type PolicyLoss,
} from './registry.ts'
export { type Schedule, scheduleAt } from './schedule.ts'
export {
  type DeviationKind,
  deviation,
  mean,
  type Numbers,
  quantile,
  weightedDeviation,
  weightedMean,
} from './statistics.ts'
