import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { armSettings, type ExperimentArm, type ExperimentDesign } from './design.ts'

/** A seed of an experiment, and at which look it was added: 0 before anything was seen. */
export interface PlannedSeed {
  readonly seed: number
  readonly look: number
}

/** What an experiment has fixed, kept in its folder: nothing of it changes later, it is only added to. */
export interface ExperimentPlan {
  readonly format: 1
  readonly question: string
  readonly budget: ExperimentDesign['budget']
  readonly price: ExperimentDesign['price'] | null
  readonly metrics: ExperimentDesign['metrics']
  readonly seeds: readonly PlannedSeed[]
  readonly arms: readonly PlannedArm[]
}

/** An arm with all of its settings, and at which look it was added. */
export interface PlannedArm {
  readonly name: string
  readonly against: string | null
  readonly settings: Readonly<Record<string, unknown>>
  readonly look: number
}

/** Seeds lie below this, so that they can be typed. */
const seedsBelow = 1_000_000

/** How a plan is continued. */
export interface PlanOptions {
  /** Chooses fresh seeds; the same number chooses the same ones. */
  readonly freshness: number
  readonly moreSeeds: number
  /** Whether results of this experiment were written before: what is added now was added after looking. */
  readonly wasSeen: boolean
}

const planFile = (folder: string): string => join(folder, 'plan.json')

/** Makes the plan of an experiment, or goes on with the one in its folder, and writes it. */
export async function planExperiment(
  design: ExperimentDesign,
  folder: string,
  options: PlanOptions,
): Promise<ExperimentPlan> {
  const before = await readPlan(folder)
  const plan = extended(before ?? newPlan(design, options), design, { folder, ...options })
  await mkdir(folder, { recursive: true })
  await replaceFile(planFile(folder), `${JSON.stringify(plan, null, 2)}\n`)
  return plan
}

/** The plan in a folder, if there is one. */
export async function readPlan(folder: string): Promise<ExperimentPlan | undefined> {
  if (!existsSync(planFile(folder))) return undefined
  const text = await readFile(planFile(folder), 'utf8')
  const plan = JSON.parse(text) as ExperimentPlan
  if (plan.format !== 1)
    throw new SettingError(`${planFile(folder)}: format ${plan.format} is not known here`)
  return plan
}

function newPlan(design: ExperimentDesign, { freshness }: PlanOptions): ExperimentPlan {
  const { question, budget, metrics, seeds, price = null } = design
  const chosen = typeof seeds === 'number' ? freshSeeds(seeds, [], freshness) : seeds
  return {
    format: 1,
    question,
    budget,
    price,
    metrics,
    seeds: chosen.map(seed => ({ seed, look: 0 })),
    arms: [],
  }
}

/** Seeds that nobody has looked at: neither 1 to N, which everybody tunes on, nor those of this experiment. */
function freshSeeds(count: number, taken: readonly number[], freshness: number): number[] {
  const draw = random(seedOf('experiment', freshness))
  const chosen = new Set<number>()
  while (chosen.size < count) {
    const seed = 1000 + Math.floor(draw() * (seedsBelow - 1000))
    if (!taken.includes(seed)) chosen.add(seed)
  }
  return [...chosen]
}

/** Adds arms and seeds, and refuses what would change a plan that has begun. */
function extended(
  plan: ExperimentPlan,
  design: ExperimentDesign,
  { folder, freshness, moreSeeds, wasSeen }: PlanOptions & { readonly folder: string },
): ExperimentPlan {
  refuseChange(plan, design, folder)
  const look = wasSeen
    ? 1 + Math.max(0, ...[...plan.seeds, ...plan.arms].map(each => each.look))
    : 0
  const arms = design.arms.map(arm => {
    const own = plannedArm(design, arm, look)
    const begun = plan.arms.find(({ name }) => name === arm.name)
    if (begun && JSON.stringify({ ...begun, look }) !== JSON.stringify(own))
      throw changed(folder, `arm ${arm.name}`)
    return begun ?? own
  })
  const gone = plan.arms.find(({ name }) => !arms.some(arm => arm.name === name))
  if (gone) throw changed(folder, `arm ${gone.name}, which is left out now,`)
  const taken = plan.seeds.map(({ seed }) => seed)
  const added = freshSeeds(moreSeeds, taken, freshness).map(seed => ({ seed, look }))
  return { ...plan, seeds: [...plan.seeds, ...added], arms }
}

function plannedArm(design: ExperimentDesign, arm: ExperimentArm, look: number): PlannedArm {
  const settings = JSON.parse(JSON.stringify(armSettings(design, arm))) as Record<string, unknown>
  return { name: arm.name, against: arm.against ?? null, settings, look }
}

function refuseChange(plan: ExperimentPlan, design: ExperimentDesign, folder: string): void {
  for (const part of ['question', 'budget', 'metrics'] as const)
    if (JSON.stringify(plan[part]) !== JSON.stringify(design[part])) throw changed(folder, part)
  if (typeof design.seeds === 'number') return
  const missing = plan.seeds.filter(({ look }) => look === 0).map(({ seed }) => seed)
  if (JSON.stringify(missing) !== JSON.stringify(design.seeds)) throw changed(folder, 'seeds')
}

function changed(folder: string, part: string): SettingError {
  return new SettingError(
    `${folder} holds an experiment that was begun with another ${part}; what was fixed before its first run stays: --out NEW begins a new one`,
  )
}
