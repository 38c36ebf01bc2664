import { z } from 'zod'
import type { AreSame } from './check-options.ts'
import { checkValue } from './check-settings.ts'
import { count, text } from './setting.ts'
import { settings } from './settings.ts'

const aFunction = () =>
  z.custom<() => unknown>(value => typeof value === 'function', 'expected a function')
const anObject = () => z.looseObject({})

/** What options of `teach` may be; what the model reads itself is checked there. */
const shape = () => ({
  show: aFunction(),
  turns: count().optional(),
  split: text().optional(),
  out: text().optional(),
  seed: settings.seed.schema,
  epochs: count().optional(),
  batch: count().optional(),
  learningRate: z.number().positive().optional(),
  weightDecay: z.number().min(0).optional(),
  onStep: aFunction().optional(),
  signal: z.custom(value => value instanceof AbortSignal, 'expected an AbortSignal').optional(),
  apart: z.array(z.unknown()).optional(),
  onApart: aFunction().optional(),
  shape: anObject().optional(),
  vocabulary: anObject().optional(),
  texts: z.array(z.string()).optional(),
  keepsApart: z.boolean().optional(),
  onLeftOut: aFunction().optional(),
  threads: z.unknown().optional(),
  kernel: z.unknown().optional(),
})

/** Refuses unknown options of `teach` and impossible values; a new option has to be known here to compile. */
export function checkTeachOptions<Options extends object>(
  options: AreSame<keyof Options, keyof ReturnType<typeof shape>> extends true ? Options : never,
): void {
  checkValue(z.strictObject(shape()), options, { from: 'options' })
}
