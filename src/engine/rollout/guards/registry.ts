import type { Guard } from '../../../base/core/guard.ts'
import {
  findPart,
  type OptionValues,
  type PartShape,
} from '../../../base/core/names/part-options.ts'
import { jsonGuard } from './json.ts'
import { repetitionGuard } from './repetition.ts'
import { sameCallGuard } from './same-call.ts'
import { thinkingGuard } from './thinking.ts'

interface GuardFactory extends PartShape {
  readonly about: string
  open(options: OptionValues): Guard
}

/** The reward of an attempt that the guard stopped; an option of every guard. */
const reward = 'number'

/** The guards that can be named. */
const guardFactories: Readonly<Record<string, GuardFactory>> = {
  repetition: {
    about: 'The same tokens again and again.',
    options: { cycle: 'count', times: 'several', reward },
    open: repetitionGuard,
  },
  thinking: {
    about: 'A thought without an end.',
    options: { tokens: 'count', reward },
    open: thinkingGuard,
  },
  json: {
    about: 'A call that can no longer become JSON.',
    options: { reward },
    open: jsonGuard,
  },
  'same-call': {
    about: 'The same call again and again.',
    options: { times: 'several', reward },
    open: sameCallGuard,
  },
}

/** Opens a guard as it is named on a command line: `repetition:times=6`. */
export function makeGuard(text: string): Guard {
  const { factory, values } = findPart('guard', text, guardFactories)
  const { reward, ...own } = values
  const guard = factory.open(own)
  return reward === undefined ? guard : { ...guard, reward: Number(reward) }
}
