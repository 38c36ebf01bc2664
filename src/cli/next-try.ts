import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../base/core/names/program-name.ts'
import type { Trained } from '../learn/learn/train.ts'
import { isShow } from '../run/demonstrations/demonstrations.ts'
import {
  defaults,
  flagOf,
  type SettingName,
  type Settings,
  settingsOf,
} from '../run/settings/settings.ts'

/** Settings as they are, some of them changed. */
type Changed = Partial<Record<SettingName, unknown>>

/** Beside the weights of a taught model: how it was taught. */
const taughtName = 'taught.json'

/** Where a model's folder says how it was taught. */
export const taughtPath = (folder: string): string => join(folder, taughtName)

/** The paragraph that ends a training run: what happened, why, and the one command to try next. */
export function verdictLine({ verdict, best }: Trained, values: Settings): string {
  const { text, remedy } = verdict
  const { words, command } = nextTry(remedy, { values, best })
  return `${text} ${words}: ${command}`
}

interface Tried {
  readonly values: Settings
  readonly best: Trained['best']
}

function nextTry(
  remedy: Trained['verdict']['remedy'],
  { values, best }: Tried,
): { readonly words: string; readonly command: string } {
  const from = best.folder ?? 'DIR'
  switch (remedy.kind) {
    case 'measure':
      return { words: 'Look at what it does', command: commandLine('show', runOf(from)) }
    case 'more-steps': {
      const policy = [`embedded:${from}`]
      return { words: 'Go on from the best', command: trainLine(values, { policy }) }
    }
    case 'more-tasks':
      return moreTasks(values)
    case 'rate':
      return {
        words: 'Try another learning rate',
        command: trainLine(values, { learningRate: rateOf(values) * remedy.factor }),
      }
    case 'group': {
      const group = 2 * values.group
      return { words: 'Try more attempts per task', command: trainLine(values, { group }) }
    }
    case 'teach-more':
      return teachMore(values)
    default:
      return remedy satisfies never
  }
}

/** The run that a checkpoint is of. */
const runOf = (folder: string): string => folder.replace(/[\\/]checkpoints[\\/].*$/, '')

/** The rate that a run had, or began with if it found itself. */
const rateOf = ({ learningRate }: Settings): number =>
  learningRate === 'auto' ? 4e-4 : learningRate

function moreTasks(values: Settings): ReturnType<typeof nextTry> {
  const { tasks = values.steps * values.tasksPerStep } = values
  return typeof tasks === 'number'
    ? { words: 'Try more tasks', command: trainLine(values, { tasks: 4 * tasks }) }
    : { words: `Add lines to ${tasks}, and try again`, command: trainLine(values, {}) }
}

/** Teaches again with four times as much, from what is right alone, if it is known how the model was taught. */
function teachMore(values: Settings): ReturnType<typeof nextTry> {
  const folder = values.policy?.[0]?.replace(/^embedded:/, '')
  const path = folder === undefined ? undefined : taughtPath(folder)
  if (path === undefined || !existsSync(path)) {
    return { words: 'Show more', command: commandLine('teach', '--help') }
  }
  const { flags } = JSON.parse(readFileSync(path, 'utf8')) as Taught
  const wordAfter = (flag: string) => flags[flags.indexOf(flag) + 1 || flags.length]
  const tasks = wordAfter('--tasks') ?? (isShow(wordAfter('--demonstrations')) ? '500' : undefined)
  const isMade = tasks !== undefined && /^\d+$/.test(tasks)
  const changes = {
    ...(isMade && { '--tasks': `${4 * Number(tasks)}` }),
    '--out': `${wordAfter('--out')}-more`,
  }
  const others = flags.filter((word, at) => !(word in changes) && !(flags[at - 1]! in changes))
  const words = tasks === undefined || isMade ? 'Show more' : `Add lines to ${tasks}, and show them`
  const isScored = isShow(wordAfter('--demonstrations')) && !flags.includes('--solved')
  const more = [...Object.entries(changes).flat(), ...(isScored ? ['--solved'] : [])]
  return { words, command: commandLine('teach', ...others, ...more) }
}

/** How a model was taught, as it is kept beside its weights. */
export interface Taught {
  /** The words behind `teach`. */
  readonly flags: readonly string[]
}

/** Settings that belong to one run, or to where it was run. */
const ownOfRun: readonly SettingName[] = ['out', 'track', 'notify', 'traces', 'metricsPort']

/** A `train` with these settings, as it can be pasted. */
export function trainLine(values: Settings, changes: Changed): string {
  const all: Changed = { ...values, ...changes }
  const names = settingsOf('train').filter(name => !ownOfRun.includes(name))
  return commandLine('train', ...names.flatMap(name => wordsOf(name, all[name])))
}

function wordsOf(name: SettingName, value: unknown): readonly string[] {
  const usual = (defaults as Changed)[name]
  if (value === undefined || JSON.stringify(value) === JSON.stringify(usual)) return []
  const flag = flagOf(name)
  if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`]
  if (Array.isArray(value)) return value.flatMap(each => [`--${flag}`, textOf(each)])
  return [`--${flag}`, textOf(value)]
}

const textOf = (value: unknown): string =>
  typeof value === 'object' ? JSON.stringify(value) : String(value)
