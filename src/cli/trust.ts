import { statSync } from 'node:fs'
import { quoted } from '../base/core/names/program-name.ts'
import {
  defaults,
  flagOf,
  type SettingName,
  type Settings,
  type SettingsInput,
  settings,
} from '../run/settings/settings.ts'
import { isUserPart } from '../run/settings/user-part.ts'
import { type Invocation, MisuseError, type OwnFlag } from './command.ts'
import { ofTheRunAlone } from './enter-run.ts'

/** The flag of commands that may run code which a run's folder names. */
export const trustFlag: OwnFlag = {
  help: 'Run the code and ask the servers that the run names; a terminal asks without it',
}

/** Our environments that start no program and make no request when opened to score. */
const quiet = ['calculator', 'desk', 'interpreter', 'key-value', 'single-turn', 'tool-loop']

/** Settings that name files, but none that is loaded as code. */
const notCode: readonly SettingName[] = [
  'tasks',
  'heldOut',
  'model',
  'out',
  'record',
  'results',
  'sinks',
]

/** Settings that lead to a machine, a program or a file, whatever they say. */
const reaching: readonly SettingName[] = [...ofTheRunAlone, 'sandbox']

/** What a command does with a run. */
export interface Use {
  /** Its settings, with those that were given as flags. */
  readonly values: Partial<Settings>
  /** Whether it samples; one that only scores asks no policy. */
  readonly samples: boolean
}

/**
 * What of a run's settings is code, a program or a server that no flag names: somebody who receives a run
 * has not chosen it.
 */
export function namedByRun({ values, samples }: Use, flags: SettingsInput): readonly string[] {
  const { environment = '', judge, reward = [] } = values
  const starts = quiet.includes(environment.split(':')[0]!) ? [] : [environment]
  const judges = judge !== undefined && reward.length > 0 ? [judge] : []
  const names = (Object.keys(settings) as SettingName[]).filter(name => !notCode.includes(name))
  const parts = names.flatMap(name => textsIn(values[name])).filter(isUserPart)
  const servers = samples ? names.flatMap(name => textsIn(values[name])).filter(namesServer) : []
  const reached = samples ? reaching.flatMap(name => textsIn(values[name])) : []
  const given = names.flatMap(name => textsIn(flags[name]))
  return [...new Set([...starts, ...servers, ...judges, ...parts, ...reached])].filter(
    name => name !== '' && name !== defaults.hub && !given.includes(name),
  )
}

/** The flag that names a part, as it can be pasted. */
export function flagNaming(values: Partial<Settings>, part: string): string {
  const names = (Object.keys(settings) as SettingName[]).filter(name => !notCode.includes(name))
  const name = names.find(each => textsIn(values[each]).includes(part))
  return name === undefined ? '--trust' : `--${flagOf(name)} ${quoted(part)}`
}

/** Asks for trust in what a run names, or demands the flag if nobody can be asked. */
export async function trustRun(run: string, use: Use, invocation: Invocation): Promise<void> {
  const { own, flags, terminal } = invocation
  const named = own.trust === undefined ? namedByRun(use, flags) : []
  if (named.length === 0) return
  const reason = `${run} names code, programs or servers: ${named.join(', ')}`
  if (await terminal.ask?.(`${reason}. They get what you may do here. Trust them?`)) return
  throw new MisuseError(
    `${reason}. If you trust ${named.length > 1 ? 'them' : 'it'}, add --trust, or name ${named[0]} yourself: ${flagNaming(use.values, named[0]!)}`,
  )
}

/** Whether a run's folder belongs to who runs this program: then it goes on without being asked for. */
export function isOwn(run: string): boolean {
  const user = process.getuid?.()
  return user === undefined || statSync(run).uid === user
}

/** Whether a setting, or an item of one, is a server that would be asked, and sent our key. */
function namesServer(text: string): boolean {
  return /(?:^|[=,])(?:https?|wss?|sglang|vllm|llama-cpp|openai|tinker|embedded:hf):/.test(text)
}

/** All texts within a setting. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}
