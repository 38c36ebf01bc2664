import { coverageOf, type TrajectoryImportance } from '../../base/core/credit.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import { findPart, type PartShape } from '../../base/core/names/part-options.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { SampledSegment } from '../../base/core/segment.ts'
import {
  type ImportanceSettings,
  importanceWeights,
  stalenessWeights,
} from '../../base/math/importance.ts'

/** How tokens sampled from other weights than those that learn are weighed. */
export interface OffPolicy {
  /** Bounded ratios between the weights before learning and those that sampled. */
  readonly ratios: readonly Partial<ImportanceSettings>[]
  /** Weights by age in versions. */
  readonly staleness?: { readonly decay: number; readonly maximumLag: number }
}

interface WeightShape extends PartShape {
  readonly about: string
  /** The bounds of a ratio's weight; `undefined` for weights by age. */
  readonly settings: Partial<ImportanceSettings> | undefined
}

const bounds = { low: 'amount', high: 'amount', veto: 'amount' } as const

/** The importance weights that can be named; several multiply. */
const importanceParts: Readonly<Record<string, WeightShape>> = {
  token: {
    about: 'Each token’s ratio, held below `high`.',
    options: { high: 'amount', veto: 'amount' },
    settings: { level: 'token', mode: 'truncate', high: 2 },
  },
  sequence: {
    about: 'The product of a trajectory’s ratios, held below `high`.',
    options: { high: 'amount', veto: 'amount' },
    settings: { level: 'sequence', mode: 'truncate', high: 2 },
  },
  mask: {
    about: 'Each token’s ratio; 0 outside of `low` to `high`.',
    options: bounds,
    settings: { level: 'token', mode: 'mask', low: 0.5, high: 2 },
  },
  icepop: {
    about: 'The same within IcePop’s wider bounds.',
    options: bounds,
    settings: { level: 'token', mode: 'mask', low: 0.5, high: 5 },
  },
  reject: {
    about:
      'Leaves out trajectories whose ratios have a geometric mean outside of `low` to `high`, and weighs no other (verl’s seq_mean_k1).',
    options: bounds,
    settings: { level: 'geometric', mode: 'reject', low: 0.999, high: 1.001 },
  },
  staleness: {
    about: 'decay to the power of a token’s age in versions; 0 beyond `lag`.',
    options: { decay: 'share', lag: 'whole' },
    settings: undefined,
  },
}

/** Reads `--importance`; several names multiply, and `none` overrides a run's setting. */
export function readImportance(names: readonly string[]): OffPolicy {
  const ratios: Partial<ImportanceSettings>[] = []
  let staleness: OffPolicy['staleness']
  for (const text of names.filter(name => name !== 'none')) {
    const { factory, values } = findPart('importance weight', text, importanceParts)
    const given = values as Readonly<Record<string, number>>
    if (factory.settings) ratios.push({ ...factory.settings, ...given })
    else {
      const { decay = 0.9, lag = Number.POSITIVE_INFINITY } = given
      staleness = { decay, maximumLag: lag }
    }
  }
  return { ratios, ...(staleness && { staleness }) }
}

/** Refuses weights whose ratio the loss already contains. */
export function checkImportance(
  names: readonly string[],
  proximal: 'recorded' | 'recompute' | undefined,
): void {
  const { ratios } = readImportance(names)
  if (ratios.length === 0 || proximal === 'recompute') return
  throw new SettingError(
    `--importance ${names.join(' ')} needs --proximal recompute: ratios that start from recorded ` +
      'log-probabilities hold the same difference already',
  )
}

/** Whether anything is weighed at all. */
export function weighs({ ratios, staleness }: OffPolicy): boolean {
  return ratios.length > 0 || staleness !== undefined
}

/**
 * A group whose members have importance weights, which rows and exports carry. A ratio is between the policy's score
 * of its finished tokens (`--proximal recompute`) and the log-probability recorded while sampling; ages count back
 * from the version `current`.
 */
export function weighImportance(group: Group, off: OffPolicy, current: number): Group {
  if (!weighs(off)) return group
  const members = group.members.map(member =>
    member.dropped === null && member.advantage !== null
      ? { ...member, importance: importanceOfMember(member, off, current) }
      : member,
  )
  return { ...group, members }
}

/** The newest version that may have sampled a token of a group; -1 if nothing was sampled. */
export function newestVersion(group: Group): number {
  const trees = new Set([...group.members, ...group.unscored].map(({ tree }) => tree))
  const versions = [...trees]
    .flatMap(({ nodes }) => nodes)
    .flatMap(({ segment }) => (segment.origin === 'sampled' ? [segment.version.to] : []))
  return versions.reduce((newest, version) => Math.max(newest, version), -1)
}

function importanceOfMember(
  member: Weighted,
  { ratios, staleness }: OffPolicy,
  current: number,
): TrajectoryImportance {
  const { tree, trajectory } = member
  const nodes = new Map<number, Float64Array>()
  const segments = [...coverageOf(tree, trajectory)].flatMap(([node, length]) => {
    const { segment } = tree.nodes[node]!
    if (segment.origin !== 'sampled') return []
    const { from } = segment.version
    const [age = 1] = staleness ? stalenessWeights([from], current, staleness) : []
    nodes.set(node, new Float64Array(length).fill(age))
    return [{ node, length, segment }]
  })
  let factor = 1
  for (const settings of ratios) {
    const engines = enginesOf(segments, trajectory.id)
    const { weights } = importanceWeights(engines, { ...settings, veto: 0 })
    if (isVetoed(engines, settings.veto ?? 0)) factor = 0
    const known = engines.mask.indexOf(1)
    if (known < 0) continue
    if (settings.level !== 'token') factor *= weights[known]!
    else multiply(nodes, segments, { weights, mask: engines.mask })
  }
  return { factor, nodes, ratios: kindOf(ratios) }
}

function kindOf(ratios: OffPolicy['ratios']): TrajectoryImportance['ratios'] {
  if (ratios.length === 0) return 'none'
  return ratios.some(({ level }) => level === 'token') ? 'tokens' : 'trajectories'
}

interface Covered {
  readonly node: number
  readonly length: number
  readonly segment: SampledSegment
}

/** All sampled tokens of a trajectory as one sequence, as both engines see them. */
function enginesOf(segments: readonly Covered[], trajectory: string) {
  const size = segments.reduce((sum, { length }) => sum + length, 0)
  const rolloutLogprobs = new Float64Array(size)
  const trainerLogprobs = new Float64Array(size)
  let at = 0
  for (const { segment, length } of segments) {
    const { logprobs, others } = segment
    if (!logprobs || !others?.proximal) throw unscored(trajectory, logprobs !== null)
    rolloutLogprobs.set(logprobs.subarray(0, length), at)
    trainerLogprobs.set(others.proximal.subarray(0, length), at)
    at += length
  }
  return {
    offsets: Int32Array.of(0, size),
    trajectory: Int32Array.of(0),
    // A token for which either gave no number has no ratio, and the weight 1.
    mask: Uint8Array.from(rolloutLogprobs, (own, token) =>
      Number.isNaN(own - trainerLogprobs[token]!) ? 0 : 1,
    ),
    rolloutLogprobs,
    trainerLogprobs,
  }
}

function unscored(trajectory: string, hasOwn: boolean): SettingError {
  const missing = hasOwn
    ? 'what the policy says of them when they are finished; roll with --proximal recompute'
    : 'log-probabilities at all'
  return new SettingError(
    `importance weights are ratios, and the tokens of ${trajectory} have not ${missing}`,
  )
}

function isVetoed(
  { rolloutLogprobs, trainerLogprobs }: ReturnType<typeof enginesOf>,
  veto: number,
): boolean {
  return trainerLogprobs.some((value, token) => Math.exp(value - rolloutLogprobs[token]!) < veto)
}

function multiply(
  nodes: ReadonlyMap<number, Float64Array>,
  segments: readonly Covered[],
  { weights, mask }: { readonly weights: Float64Array; readonly mask: Uint8Array },
): void {
  let at = 0
  for (const { node, length } of segments) {
    const own = nodes.get(node)!
    for (let token = 0; token < length; token++, at++) {
      if (mask[at] === 1) own[token]! *= weights[at]!
    }
  }
}
