import { z } from 'zod'

/** One setting: its values, and its help. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema
  readonly help: string
  /** What its value is called in help; switches have none. */
  readonly argument?: string
  /** The flag's name where it is not the key in kebab-case. */
  readonly flag?: string
  /** Given several times, or separated by commas in a list. */
  readonly isList?: boolean
  /** Its default. */
  readonly default?: unknown
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
  const More extends Omit<Setting<Schema>, 'schema' | 'help'> = Record<never, never>,
>(make: () => Schema, help: string, more?: More): { schema: Schema; help: string } & More {
  let made: Schema | undefined
  return {
    get schema() {
      made ??= make()
      return made
    },
    help,
    ...(more as More),
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
