import type { Group } from '../../base/core/group.ts'
import { type LeafWeighting, leafWeightNames } from '../../base/math/credit.ts'
import { type ComparedRewards, comparedAnew } from '../../engine/weigh/batch-scale.ts'
import { makeEstimate } from '../../engine/weigh/estimate.ts'
import { newestVersion, readImportance, weighImportance } from '../../engine/weigh/importance.ts'
import { type Shaping, shapedEstimate, withShapedRewards } from '../../engine/weigh/shape.ts'
import { readShaping } from '../../engine/weigh/shaping.ts'
import type { Format } from '../sinks/format.ts'
import type { RunReader } from '../store/store.ts'

type Config = Readonly<Record<string, unknown>>

/** Weighs groups for a trainer, with notes on what to know before training. */
export interface Weighing {
  weigh(group: Group): Group
  readonly notes: readonly string[]
}

/** What an export may change about weighing. */
export interface WeighingOptions {
  readonly format: Format
  /** Importance weights; those of the run unless given. */
  readonly importance?: readonly string[] | undefined
}

/**
 * Weighs the groups of a run as its trainer had them: a comparison over batches is scaled by the spread of each
 * step, tokens have their importance weights, and where a trainer compares rewards itself these are the shaped ones.
 */
export async function makeWeighing(
  reader: RunReader,
  config: Config,
  options: WeighingOptions,
): Promise<Weighing> {
  const scaled = await makeScaling(reader, config)
  const off = readImportance(options.importance ?? namesOf(config))
  const newest = off.staleness ? await newestOf(reader) : 0
  const shaped = makeShapedRewards(config, options.format)
  const isAsked = options.importance !== undefined
  return {
    weigh(group) {
      const own = isAsked || isScored(group) ? off : { ...off, ratios: [] }
      const bare = isAsked ? withoutImportance(group) : group
      return shaped.weigh(weighImportance(scaled(bare), own, newest))
    },
    notes: shaped.notes,
  }
}

/** Weighs groups while a run goes on: ages count back from the newest version seen so far. */
export function makeLiveWeighing(
  config: Config,
  { format, importance }: WeighingOptions,
): Weighing {
  const off = readImportance(importance ?? namesOf(config))
  const shaped = makeShapedRewards(config, format)
  let newest = -1
  return {
    weigh(group) {
      newest = Math.max(newest, newestVersion(group))
      const own = isScored(group) ? off : { ...off, ratios: [] }
      return shaped.weigh(weighImportance(group, own, newest))
    },
    notes: shaped.notes,
  }
}

/** A group without the weights that its file had, to be weighed anew or not at all. */
function withoutImportance(group: Group): Group {
  const members = group.members.map(({ importance: _, ...member }) => member)
  return { ...group, members }
}

function namesOf({ importance }: Config): readonly string[] {
  return Array.isArray(importance) ? (importance as readonly string[]) : []
}

/** Whether the policy scored its own finished tokens (`proximal`), which some importance weights need. */
function isScored({ members }: Group): boolean {
  return members.some(({ tree }) =>
    tree.nodes.some(({ segment }) => segment.others?.proximal !== undefined),
  )
}

async function newestOf(reader: RunReader): Promise<number> {
  let newest = 0
  for await (const { group } of reader.groups()) newest = Math.max(newest, newestVersion(group))
  return newest
}

/** Rewards after the run's penalties, for trainers that compare rewards themselves. */
function makeShapedRewards(config: Config, { comparesRewards, name }: Format): Weighing {
  const { distillation: _, ...shaping } = shapingOf(config)
  const penalties = [
    ...(shaping.overlong ? ['the overlong penalty'] : []),
    ...(shaping.voidTurns?.kind === 'penalty' ? ['the penalty for void turns'] : []),
    ...(shaping.kl ? ['the KL penalty'] : []),
  ]
  if (!comparesRewards || penalties.length === 0) return { weigh: group => group, notes: [] }
  return {
    weigh: group => withShapedRewards(group, shaping),
    notes: [`rewards are as ${name} should compare them: less ${penalties.join(' and ')}`],
  }
}

function shapingOf({ overlong, distill, voidTurns, klPenalty, klIn }: Config): Shaping {
  return readShaping({
    ...(typeof overlong === 'string' && { overlong }),
    ...(typeof distill === 'string' && { distill }),
    ...(typeof voidTurns === 'string' && { voidTurns }),
    ...(typeof klPenalty === 'number' && { klPenalty }),
    ...(klIn === 'reward' && { klIn }),
    has: { reference: true, teacher: true },
  })
}

async function makeScaling(reader: RunReader, config: Config): Promise<(group: Group) => Group> {
  const { advantage } = config
  if (typeof advantage !== 'string') return group => group
  const { batch } = shapedEstimate(makeEstimate(advantage), shapingOf(config))
  if (!batch) return group => group
  const weighting = weightingOf(config)
  const steps = new Map<number, ComparedRewards[]>()
  for await (const { group } of reader.groups()) {
    if (group.step === undefined) continue
    const known = steps.get(group.step) ?? []
    steps.set(group.step, [...known, batch.rewardsOf(group, weighting)])
  }
  const scaled = new Map([...steps].map(([step, all]) => [step, batch.over(batch.spreadOf(all))]))
  return group => {
    const estimate = scaled.get(group.step ?? -1)
    return estimate ? comparedAnew(group, estimate, weighting) : group
  }
}

/** How the trees of a run share their tokens, by its settings. */
export function weightingOf(config: Config): LeafWeighting {
  return leafWeightNames.find(each => each === config.weighting) ?? 'uniform'
}
