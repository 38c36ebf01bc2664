import { z } from 'zod'

/** Commands that take settings of runs. */
export const runCommands = ['roll', 'eval', 'train', 'gateway', 'rollouts', 'fork'] as const

/** One of them. */
export type RunCommand = (typeof runCommands)[number]

/** The function of the library that does what a command does, for those that have one. */
export const functionOf = {
  roll: 'roll',
  eval: 'evaluate',
  train: 'train',
  gateway: 'gateway',
} as const satisfies Partial<Record<RunCommand, string>>

/** A function of the library that takes settings as options. */
export type OptionTaker = (typeof functionOf)[keyof typeof functionOf]

/** One setting: its values, its help, and who uses it. Everything that is said of settings elsewhere is derived from this. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema
  readonly help: string
  /** What its value is called in help; switches have none. */
  readonly argument?: string
  /** The flag's name if it is not the key in kebab-case. */
  readonly flag?: string
  /** Given several times, or separated by commas in a list. */
  readonly isList?: boolean
  /** Its default. */
  readonly default?: unknown
  /**
   * The commands that take it. `gateway` takes none that steers worlds, which its agents do; `rollouts` none that ends a
   * run; `fork` none that changes what is continued instead of how. @default all of them
   */
  readonly commands?: readonly RunCommand[]
  /**
   * Who uses it in a run with several threads: the threads, which open it again by its name; the run itself, in the main
   * thread; or something that sees every sample and so keeps the run in one thread.
   */
  readonly usedIn: 'threads' | 'run' | 'one thread'
  /** Where it stands in the library if it is no option of its own name: `limits.turns`, or words. */
  readonly inCode?: string
  /** The functions that take it as an option. @default those of its commands, and none if it stands elsewhere */
  readonly functions?: readonly OptionTaker[]
}

/** A whole number from 1 on. */
export const count = () => z.int().min(1)
/** A part of a whole. */
export const share = () => z.number().min(0).max(1)
/** A text that is not empty. */
export const text = () => z.string().min(1)
/** Several of them. */
export const texts = () => z.array(text())

/**
 * Keeps the type of a default apart from its absence: a setting with one always has a value. Its schema is
 * made when it is first used, since a command is given a few settings of nearly a hundred.
 */
export function setting<
  Schema extends z.ZodType,
  const More extends Omit<Setting<Schema>, 'schema' | 'help'>,
>(make: () => Schema, help: string, more: More): { schema: Schema; help: string } & More {
  let made: Schema | undefined
  return {
    get schema() {
      made ??= make()
      return made
    },
    help,
    ...more,
  }
}

/** How many pieces of work may run at one time: one number for all, or lane by lane. */
export const concurrency = () =>
  z.union([
    count(),
    z.strictObject({
      rollouts: count().optional(),
      policy: count().optional(),
      tools: count().optional(),
      environment: count().optional(),
      reward: count().optional(),
    }),
  ])

/** What a whole run may cost. */
export const budget = () =>
  z
    .strictObject({
      tokens: count().optional(),
      seconds: z.number().positive().optional(),
      trajectories: count().optional(),
      money: z.number().positive().optional(),
      /** Price of a million prompt and sampled tokens. */
      price: z.strictObject({ prompt: z.number().min(0), sampled: z.number().min(0) }).optional(),
      perRollout: z.strictObject({ money: z.number().positive().optional() }).optional(),
    })
    .refine(({ money, perRollout, price }) => price || (money ?? perRollout?.money) === undefined, {
      message: 'money needs a price, {"prompt","sampled"} of a million tokens',
    })
