import type { Setting } from '../run/settings/setting.ts'
import {
  byTopic,
  flagOf,
  type SettingName,
  settingNames,
  settings,
  shownFlag,
  withoutUndefined,
} from '../run/settings/settings.ts'

import type { Command, OwnFlag } from './command.ts'
import { commonFlags, configFlags, isEmpty } from './flags.ts'

/** Every setting, whichever command takes it. */
export function settingsHelp(): string {
  return [
    'Settings, as flags; a config file has the same names in camelCase:',
    ...topicLines(settingNames, name => flagLine(shownFlag(name), settings[name])),
    '',
    'espalier --help config --json prints a JSON schema for editors.',
  ].join('\n')
}

/** The help of one command: what it does, its flags with their defaults, examples. */
export function commandHelp(command: Command): string {
  const own = Object.entries(command.own ?? {})
  const isBorrowed = own.length > 0 && command.settings.length > most
  const flags = [
    ...own.map(ownLine),
    ...(isBorrowed && own.length > 1 ? [sharedLine(command)] : settingLines(command)),
    ...(command.readsConfig ? Object.entries(configFlags).map(ownLine) : []),
    ...Object.entries(commonFlags).map(ownLine),
  ]
  return [
    `Usage: espalier ${command.name} ${command.usage}`.trimEnd(),
    '',
    command.about,
    '',
    ...flags,
    ...(command.examples.length > 0
      ? ['', 'Examples:', ...command.examples.map(each => `  ${each}`)]
      : []),
  ].join('\n')
}

/** From this many settings on, a command with flags of its own only names them and refers to `--help config`. */
const most = 40

/** The settings of a command, under headings if they are many. */
function settingLines(command: Command): readonly string[] {
  const line = (name: SettingName): string => settingLine(name, command)
  if (command.settings.length <= few) return command.settings.map(line)
  return [...topicLines(command.settings, line), '']
}

/** Fewer settings than this need no headings. */
const few = 20

function topicLines(
  names: readonly SettingName[],
  line: (name: SettingName) => string,
): readonly string[] {
  return byTopic(names).flatMap(({ topic, names: about }) => ['', `${topic}:`, ...about.map(line)])
}

function settingLine(name: SettingName, { defaults, help }: Command): string {
  const given = defaults?.[name]
  return flagLine(shownFlag(name), {
    ...settings[name],
    ...withoutUndefined({ help: help?.[name] }),
    ...(given !== undefined && { default: given }),
  })
}

/** The flags that a command shares with rolling, by name; `--help config` says what they do. */
function sharedLine({ settings: names }: Command): string {
  const lines: string[] = ['', '  All of these as well; espalier --help config explains them:']
  let line = '   '
  for (const name of names) {
    const isSwitch = (settings[name] as Setting).argument === undefined
    const word = ` --${isSwitch ? '[no-]' : ''}${flagOf(name)}`
    if (line.length + word.length > 98) {
      lines.push(line)
      line = '   '
    }
    line += word
  }
  return [...lines, line, ''].join('\n')
}

function ownLine([flag, { help, argument }]: readonly [string, OwnFlag]): string {
  return flagLine(`--${flag}${argument ? ` ${argument}` : ''}`, { help })
}

function flagLine(
  flag: string,
  { help, default: value }: Pick<Setting, 'help' | 'default'>,
): string {
  const shown =
    value === undefined || value === false || isEmpty(value) ? '' : ` (default: ${show(value)})`
  return `  ${flag.padEnd(34)} ${help}${shown}`
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Where the words of a flag's line begin. */
const column = 37

/** Help for a terminal of so many columns: what a flag does stays beside it if there is room, and below it elsewhere. */
export function folded(help: string, width = Number.POSITIVE_INFINITY): string {
  const lines = help.split('\n').flatMap(line => {
    const indent = line.startsWith('  --') && width >= 2 * column ? column : 6
    return line.length <= width ? [line] : foldLine(line, width, ' '.repeat(indent))
  })
  return lines.join('\n')
}

function foldLine(line: string, width: number, indent: string): readonly string[] {
  const lines: string[] = []
  let rest = line
  while (rest.length > width) {
    const last = rest.lastIndexOf(' ', width)
    // A word that is longer than a line stays whole.
    const at = last > indent.length ? last : rest.indexOf(' ', indent.length + 1)
    if (at === -1) break
    lines.push(rest.slice(0, at).trimEnd())
    rest = indent + rest.slice(at).trimStart()
  }
  return [...lines, rest]
}
