import { z } from 'zod'
import { didYouMean } from '../../base/core/names/nearest.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { checkSettings, checkValue } from '../../run/settings/check-settings.ts'
import { type SettingsInput, withDefaults } from '../../run/settings/settings.ts'

/** How much every cell may spend on what it learns from. */
export type ExperimentBudget =
  | { readonly kind: 'tokens'; readonly most: number }
  | { readonly kind: 'seconds'; readonly most: number }
  | { readonly kind: 'money'; readonly most: number }

/** One way to train that is compared with another. */
export interface ExperimentArm {
  readonly name: string
  /** What differs from the settings of all arms. */
  readonly settings: SettingsInput
  /** The arm it is compared with; none for the first. */
  readonly against: string | undefined
}

/** A controlled experiment, as its file fixes it before the first run. */
export interface ExperimentDesign {
  readonly question: string
  readonly budget: ExperimentBudget
  /** How many fresh seeds, or which. */
  readonly seeds: number | readonly number[]
  /** The settings of `train` that all arms share. */
  readonly settings: SettingsInput
  readonly arms: readonly ExperimentArm[]
  /** What a million tokens cost, for budgets of money and for the table. */
  readonly price: ExperimentPrice | undefined
  /** What is compared; every one is a comparison more to correct for. */
  readonly metrics: readonly ExperimentMetric[]
}

/** What a million tokens cost. */
export interface ExperimentPrice {
  readonly prompt: number
  readonly sampled: number
}

/** What can be compared: held-out success, or held-out mean reward. */
export const experimentMetrics = ['success', 'reward'] as const

/** One of them. */
export type ExperimentMetric = (typeof experimentMetrics)[number]

/** Settings that the experiment itself decides, and what decides them. */
const ownSettings: Readonly<Record<string, string>> = {
  seed: 'the experiment’s `seeds`',
  out: '--out',
  steps: 'the budget: a cell takes steps until it is spent',
  budget: '`tokens`, `seconds` or `money` of the experiment',
  cluster: '--jobs',
}

const armSchema = z.looseObject({ against: z.string().optional() })

const fileSchema = z.strictObject({
  question: z.string().min(1).max(1000),
  tokens: z.int().positive().optional(),
  seconds: z.number().positive().optional(),
  money: z.number().positive().optional(),
  price: z.strictObject({ prompt: z.number().min(0), sampled: z.number().min(0) }).optional(),
  seeds: z.union([z.int().min(1).max(1000), z.array(z.int().min(0)).min(1).max(1000)]).default(5),
  metrics: z.array(z.enum(experimentMetrics)).min(1).max(2).default(['success']),
  settings: z.record(z.string(), z.unknown()).default({}),
  arms: z.record(z.string(), armSchema),
})

/** Most arms of an experiment: each is a comparison, and more of them only find chance. */
const mostArms = 32

/** Reads an experiment from what its file says; every mistake is told with its place. */
export function readDesign(value: unknown, file: string): ExperimentDesign {
  const read = checkValue(fileSchema, value, { from: file }) as z.infer<typeof fileSchema>
  const settings = settingsAt(read.settings, `${file}: settings`)
  const names = Object.keys(read.arms)
  if (names.length < 2)
    throw new SettingError(
      `${file}: arms: an experiment compares at least two, this has ${names.length}`,
    )
  if (names.length > mostArms)
    throw new SettingError(`${file}: arms: ${names.length} are more than ${mostArms}`)
  if (Array.isArray(read.seeds) && new Set(read.seeds).size < read.seeds.length)
    throw new SettingError(`${file}: seeds: one stands there twice`)
  const arms = names.map((name, index): ExperimentArm => {
    const { against = index === 0 ? undefined : names[0], ...own } = read.arms[name]!
    checkArmName(name, file)
    if (index === 0 && against !== undefined)
      throw new SettingError(
        `${file}: arms.${name}: the first arm is the one that others are compared with`,
      )
    if (against === name || (against !== undefined && !names.includes(against)))
      throw new SettingError(
        `${file}: arms.${name}: against "${against}": the other arms are ${names.filter(each => each !== name).join(', ')}.${didYouMean(against, names)}`,
      )
    return { name, settings: settingsAt(own, `${file}: arms.${name}`), against }
  })
  refuseEqualArms(arms, settings, file)
  const { question, seeds, metrics, price } = read
  if (read.money !== undefined && !price)
    throw new SettingError(
      `${file}: a budget of money needs the price of a million tokens: price = { prompt = …, sampled = … }`,
    )
  return { question, budget: budgetOf(read, file), seeds, settings, arms, metrics, price }
}

function checkArmName(name: string, file: string): void {
  if (/^[a-z\d][\w.+-]{0,63}$/i.test(name)) return
  throw new SettingError(
    `${file}: arms: "${name}" is no name for an arm: letters, digits, ".", "_", "+" and "-", 64 at most, since its runs lie in a folder of that name`,
  )
}

function settingsAt(values: Readonly<Record<string, unknown>>, place: string): SettingsInput {
  for (const [name, decider] of Object.entries(ownSettings))
    if (values[name] !== undefined)
      throw new SettingError(`${place}: ${name} is decided by ${decider}; leave it out`)
  return checkSettings(values, place)
}

/** Arms that would run the same twice answer nothing; what is named as its default is no change. */
function refuseEqualArms(
  arms: readonly ExperimentArm[],
  shared: SettingsInput,
  file: string,
): void {
  const seen = new Map<string, string>()
  for (const { name, settings } of arms) {
    const own = JSON.stringify(sorted(withDefaults({ ...shared, ...settings })))
    const twin = seen.get(own)
    if (twin !== undefined)
      throw new SettingError(
        `${file}: arms.${name} has the same settings as arms.${twin}: an arm changes something`,
      )
    seen.set(own, name)
  }
}

function sorted(values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function budgetOf(
  { tokens, seconds, money }: z.infer<typeof fileSchema>,
  file: string,
): ExperimentBudget {
  const given = Object.entries({ tokens, seconds, money }).filter(([, most]) => most !== undefined)
  const [first] = given
  if (!first || given.length > 1)
    throw new SettingError(
      `${file}: a cell’s budget is one of tokens, seconds or money; here ${given.length === 0 ? 'is none' : `are ${given.map(([name]) => name).join(' and ')}`}`,
    )
  return { kind: first[0] as ExperimentBudget['kind'], most: first[1] as number }
}

/** The settings of one arm, laid over those of all. */
export function armSettings({ settings }: ExperimentDesign, arm: ExperimentArm): SettingsInput {
  return { ...settings, ...arm.settings }
}
