import type { Guard } from '../../core/guard.ts'
import { parsePartName, UnknownPartError } from '../../core/part-name.ts'
import { jsonGuard } from './json.ts'
import { repetitionGuard } from './repetition.ts'
import { sameCallGuard } from './same-call.ts'
import { thinkingGuard } from './thinking.ts'

interface GuardFactory {
  readonly about: string
  readonly options: readonly string[]
  open(options: Readonly<Record<string, number>>): Guard
}

/** The guards that can be named. */
export const guardFactories: Readonly<Record<string, GuardFactory>> = {
  repetition: {
    about: 'The same tokens again and again.',
    options: ['cycle', 'times'],
    open: repetitionGuard,
  },
  thinking: { about: 'A thought without an end.', options: ['tokens'], open: thinkingGuard },
  json: { about: 'A call that can no longer become JSON.', options: [], open: jsonGuard },
  'same-call': { about: 'The same call again and again.', options: ['times'], open: sameCallGuard },
}

/** Opens a guard as it is named on a command line: `repetition:times=6`. */
export function openGuard(text: string): Guard {
  const { name, options } = parsePartName(text)
  const factory = Object.hasOwn(guardFactories, name) ? guardFactories[name] : undefined
  if (!factory) throw new UnknownPartError('guard', name, Object.keys(guardFactories))
  const { reward, ...own } = Object.fromEntries(options)
  const given = Object.fromEntries(
    Object.entries(own).map(([key, value]) => {
      if (!factory.options.includes(key)) {
        throw new Error(
          `guard "${name}" has no option "${key}". Known: ${[...factory.options, 'reward'].join(', ')}.`,
        )
      }
      if (!(Number(value) >= 1))
        throw new Error(`guard "${name}": ${key} must be at least 1, not "${value}"`)
      return [key, Number(value)]
    }),
  )
  const guard = factory.open(given)
  return reward === undefined ? guard : { ...guard, reward: readReward(name, reward) }
}

function readReward(name: string, text: string): number {
  const reward = Number(text)
  if (text.trim() !== '' && Number.isFinite(reward)) return reward
  throw new Error(`guard "${name}": reward must be a number, not "${text}"`)
}
