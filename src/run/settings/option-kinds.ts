import type { OptionTaker, Setting } from './setting.ts'
import type { SettingName } from './settings.ts'

/** What an option may be, in words and as a test. */
export interface Kind {
  readonly wanted: string
  fits(value: unknown): boolean
}

export const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null
const has = (value: unknown, name: PropertyKey): boolean => isObject(value) && name in value

const aFunction: Kind = { wanted: 'a function', fits: value => typeof value === 'function' }
const aSwitch: Kind = { wanted: 'true or false', fits: value => typeof value === 'boolean' }
const anObject: Kind = {
  wanted: 'an object',
  fits: value => isObject(value) && !Array.isArray(value),
}
const aSchedule: Kind = {
  wanted: 'a schedule',
  fits: value => aFunction.fits(value) || anObject.fits(value),
}
const aPort: Kind = {
  wanted: 'a whole number from 0 to 65535',
  fits: value => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < 65_536,
}
const aCount: Kind = {
  wanted: 'a whole number from 1 on',
  fits: value =>
    value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && Number(value) > 0),
}
const someSeconds: Kind = {
  wanted: 'a number of seconds from 0 on',
  fits: value => typeof value === 'number' && value >= 0,
}
const anything: Kind = { wanted: 'anything', fits: () => true }
const anOpened = (what: string, method: string): Kind => ({
  wanted: `an opened ${what}, an object with ${method}`,
  fits: value => has(value, method),
})
const aPolicy = anOpened('policy', 'sample')
const listOf = (what: string): Kind => ({
  wanted: `a list of names and ${what}`,
  fits: value =>
    Array.isArray(value) && value.every(each => isObject(each) || (each !== '' && isText(each))),
})
const isText = (value: unknown): boolean => typeof value === 'string'

/** Tasks that are given one by one; a list of none is a mistake. */
export const tasksOneByOne: Kind = {
  wanted: 'a list of tasks that is not empty, or anything that gives them one by one',
  fits: value =>
    Array.isArray(value)
      ? value.length > 0
      : has(value, Symbol.iterator) || has(value, Symbol.asyncIterator),
}

/** What options may be besides what the settings of their names may be: parts that are opened already. */
export const openedParts: Readonly<Partial<Record<SettingName, Kind>>> = {
  environment: anOpened('environment', 'open'),
  tasks: tasksOneByOne,
  demonstrations: {
    wanted: 'a list of conversations',
    fits: value => Array.isArray(value) && value.every(each => has(each, 'messages')),
  },
  policy: aPolicy,
  reference: aPolicy,
  teacher: aPolicy,
  model: anOpened('renderer', 'render'),
  strategy: aFunction,
  branch: anObject,
  condense: anOpened('condenser', 'condenser'),
  guards: listOf('guards'),
  filters: listOf('filters'),
  reward: anObject,
  seats: anObject,
  prompt: anObject,
  trainer: anObject,
  learningRate: aSchedule,
  heldOut: tasksOneByOne,
}

/** An option that is no setting, for the functions that take it. */
interface OtherOption extends Kind {
  readonly functions: readonly OptionTaker[]
  /** Who uses it in a run with several threads. */
  readonly usedIn: Setting['usedIn']
}

const everybody = ['roll', 'evaluate', 'train', 'gateway'] as const

function option<const Functions extends readonly OptionTaker[]>(
  kind: Kind,
  functions: Functions,
  usedIn: Setting['usedIn'] = 'run',
) {
  return { ...kind, functions, usedIn }
}

/** Options that are no settings. */
export const otherOptions = {
  sampling: option(anObject, everybody, 'threads'),
  limits: option(anObject, everybody, 'threads'),
  listen: option(aFunction, everybody),
  tell: option(aFunction, everybody),
  instruments: option(
    {
      wanted: 'a list of functions',
      fits: value => Array.isArray(value) && value.every(aFunction.fits),
    },
    everybody,
    'one thread',
  ),
  signal: option({ wanted: 'an AbortSignal', fits: value => has(value, 'aborted') }, everybody),
  today: option({ wanted: 'a Date', fits: value => value instanceof Date }, everybody, 'threads'),
  resumes: option(aSwitch, ['roll', 'evaluate', 'train']),
  retry: option({ wanted: "'failed'", fits: value => value === 'failed' }, [
    'roll',
    'evaluate',
    'train',
  ]),
  elsewhere: option(aFunction, ['roll', 'evaluate', 'train'], 'one thread'),
  config: option(anObject, everybody),
  entropy: option(
    {
      wanted: 'a number, a schedule or a target',
      fits: value => Number.isFinite(value) || aSchedule.fits(value),
    },
    ['train'],
  ),
  lossOptions: option(anObject, ['train']),
  onStep: option(aFunction, ['train']),
  isEnough: option(aFunction, ['train']),
  onEvaluation: option(aFunction, ['train']),
  onTask: option(aFunction, ['evaluate']),
  port: option(aPort, ['gateway']),
  host: option(anything, ['gateway']),
  secrets: option(anything, ['gateway']),
  attempts: option(aCount, ['gateway']),
  idleSeconds: option(someSeconds, ['gateway']),
  graceSeconds: option(someSeconds, ['gateway']),
  onGroup: option(aFunction, ['gateway']),
} as const satisfies Record<string, OtherOption>
