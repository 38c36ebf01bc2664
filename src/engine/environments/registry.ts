import type { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'
import { parsePartName, UnknownPartError } from '../../base/core/names/part-name.ts'
import type { SmallTalk } from './built-in/small-talk.ts'
import type { EnvironmentFactory, LateFactory } from './factory.ts'

const talk = (name: SmallTalk): LateFactory => {
  return async () => (await import('./built-in/factory.ts')).smallTalkFactory(name)
}

/** The environments that can be named; each is loaded when it is. */
const builtInEnvironments: Readonly<Record<string, LateFactory>> = {
  calc2: talk('calc2'),
  calculator: async () => (await import('./built-in/factory.ts')).calculatorFactory,
  cheaper: talk('cheaper'),
  desk: async () => (await import('./desk/factory.ts')).deskFactory,
  guess: talk('guess'),
  'key-value': async () => (await import('./built-in/factory.ts')).keyValueFactory,
  passages: async () => (await import('./built-in/factory.ts')).passagesFactory,
  recorded: async () => (await import('./built-in/factory.ts')).recordedFactory,
  signs: talk('signs'),
  'single-turn': async () => (await import('./built-in/factory.ts')).singleTurnFactory,
  'tool-loop': async () => (await import('./built-in/factory.ts')).toolLoopFactory,
}

/**
 * Opens an environment as it is named on a command line, `NAME[:ITEM,…]`. `factories` adds to the
 * built-in ones.
 */
export async function openEnvironment(
  text: string,
  factories: Readonly<Record<string, EnvironmentFactory | LateFactory>> = {},
): Promise<Environment> {
  const { name, variant, options } = parsePartName(text)
  const known = new Map(Object.entries({ ...builtInEnvironments, ...factories }))
  const found = known.get(name)
  if (!found) throw new UnknownPartError('environment', name, [...known.keys()])
  const factory = typeof found === 'function' ? await found() : found
  const given = { ...Object.fromEntries(options), ...(variant !== undefined && { variant }) }
  const read = factory.options.safeParse(given)
  if (!read.success) throw new TypeError(describeProblems(name, factory, read.error))
  return await factory.open(read.data)
}

function describeProblems(
  name: string,
  { options }: EnvironmentFactory,
  error: z.ZodError,
): string {
  const problems = error.issues.map(issue =>
    issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message,
  )
  const keys = Object.keys(options.shape)
  const known = keys.length > 0 ? `Its options: ${keys.join(', ')}.` : 'It has no options.'
  return `Environment "${name}": ${problems.join('; ')}. ${known}`
}
