import { didYouMean } from '../base/core/names/nearest.ts'
import { SettingError } from '../base/core/names/setting-error.ts'
import type { SettingName, SettingsInput } from '../run/settings/settings.ts'
import type { Terminal } from './terminal.ts'

/** A flag that only one command has. */
export interface OwnFlag {
  readonly help: string
  /** What its value is called; without one it is a switch. */
  readonly argument?: string
  /** May be given several times. */
  readonly isList?: boolean
}

/** What a command is called with. */
export interface Invocation {
  readonly positionals: readonly string[]
  /** Settings given as flags, checked. */
  readonly flags: SettingsInput
  /** The command's own flags as they were written; a switch that was given is ''. */
  readonly own: Readonly<Record<string, string | undefined>>
  /** What its own flags that may be given several times were given. */
  readonly lists: Readonly<Record<string, readonly string[]>>
  readonly json: boolean
  /** The config file and the profile that were named, if any. */
  readonly config: string | undefined
  readonly profile: string | undefined
  readonly terminal: Terminal
  readonly signal: AbortSignal
}

/** One thing the program does. */
export interface Command {
  readonly name: string
  /** What follows its name: `RUN [ID]`. */
  readonly usage: string
  /** A paragraph, and what it is for. */
  readonly about: string
  readonly examples: readonly string[]
  /** The settings it takes as flags. */
  readonly settings: readonly SettingName[]
  /** This command's own defaults for settings, as a value or in words, if they differ from the usual ones. */
  readonly defaults?: Readonly<Partial<Record<SettingName, unknown>>>
  /** What settings are to this command, if that differs from what they usually are. */
  readonly help?: Readonly<Partial<Record<SettingName, string>>>
  /** Whether settings may also come from a config file. */
  readonly readsConfig?: boolean
  readonly own?: Readonly<Record<string, OwnFlag>>
  /** Set if an interruption leaves nothing behind: what it makes is written at its end. */
  readonly keepsNothing?: boolean
  /** How many positional arguments it takes: at least, at most. */
  readonly positionalCount: readonly [number, number]
  /** Gives the exit code: 0 done, 1 failed. */
  run(invocation: Invocation): Promise<number>
}

/** The command was called wrongly: exit code 2. */
export class MisuseError extends Error {
  override name = 'MisuseError'
}

/** The error for a subcommand that does not exist. */
export function unknownVerb(command: string, verb: string | undefined, known: readonly string[]) {
  const hint = didYouMean(verb ?? '', known)
  return new MisuseError(`espalier ${command} has no "${verb}". Known: ${known.join(', ')}.${hint}`)
}

/** The first error, if closing things after it threw another. */
export function firstCause(error: unknown): unknown {
  let first = error
  while (first instanceof Error && 'suppressed' in first) first = first.suppressed
  return first
}

/** The exit code after an error: 2 for misuse, 1 for a failure. */
export function exitCodeOf(error: unknown): 1 | 2 {
  return error instanceof MisuseError || error instanceof SettingError ? 2 : 1
}
