#!/usr/bin/env node
import * as modules from 'node:module'
import { onSignal } from '@espalier/text/signals'
import { describeCause } from '../base/core/failure.ts'
import { didYouMean } from '../base/core/names/nearest.ts'
import { packageVersion } from '../base/core/process/package-version.ts'
import { keepSecretVariables } from '../base/core/process/secrets.ts'
import { type Command, exitCodeOf, firstCause, MisuseError } from './command.ts'
import { commandNames, loadCommand, programHelp } from './commands.ts'
import { Ending } from './ending.ts'
import '../offers.ts'
import { makeTerminal, type Terminal } from './terminal.ts'

// Node 22 and later keep compiled code between starts; all but this file is loaded after this.
;(modules as { enableCompileCache?: () => unknown }).enableCompileCache?.()
keepSecretVariables(process.env)
const terminal = makeTerminal(process)
const stop = new AbortController()
const ending = new Ending(process, { tell: terminal.tell, stop })

/** What an interruption leaves, as the command that runs says. */
let left = 'what is finished is kept'

/** Whether the command writes a run, which is worth more than what it prints. */
let keepsRun = false
let isUnread = false

/** The first interruption ends the run in order; the second ends the process. */
function onInterrupt(): void {
  if (stop.signal.aborted) ending.leave(130)
  terminal.tell(`stopping; ${left}. Press Ctrl-C again to stop at once.`)
  stop.abort(new Error('interrupted'))
}

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || ['--help', '-h', 'help'].includes(name)) return await printHelp(rest)
  if (name === '--version') {
    terminal.print(packageVersion())
    return 0
  }
  const [command, { readFlags }] = await Promise.all([findCommand(name), import('./flags.ts')])
  const read = readFlags(command, rest)
  if (read.help) return await printHelp([name])
  keepsRun = command.settings.includes('out') && !command.keepsNothing
  if (command.keepsNothing) left = 'nothing is kept, as it is written at the end'
  return await command.run({ ...read, terminal, signal: stop.signal })
}

/** The help of the program, of all settings or of one command. */
async function printHelp([about, ...rest]: readonly string[]): Promise<number> {
  const isOverview = about === undefined || about === 'all'
  if (about === 'config') await printConfigHelp(rest.includes('--json'))
  else if (isOverview) terminal.print(programHelp(about === 'all'))
  else {
    const { commandHelp, folded } = await import('./help.ts')
    terminal.print(folded(commandHelp(await findCommand(about)), process.stdout.columns))
  }
  return 0
}

/** Every setting, for people or as a JSON schema for editors. */
async function printConfigHelp(isSchema: boolean): Promise<void> {
  const { configSchema } = await import('../run/settings/config-schema.ts')
  if (isSchema) terminal.print(JSON.stringify(configSchema(), null, 2))
  else {
    const { folded, settingsHelp } = await import('./help.ts')
    terminal.print(folded(settingsHelp(), process.stdout.columns))
  }
}

async function findCommand(name: string): Promise<Command> {
  const command = await loadCommand(name)
  if (command) return command
  const hint = didYouMean(name, commandNames) || ' espalier --help all lists them.'
  throw new MisuseError(`no command "${name}".${hint}`)
}

function report(terminal: Terminal, thrown: unknown): number {
  const error = firstCause(thrown)
  terminal.tell(
    // Class names mean nothing to users.
    `espalier: ${describeCause(error).replace(/^[A-Z]\w*Error: /, '')}`,
  )
  if (process.env.ESPALIER_DEBUG && error instanceof Error) terminal.tell(error.stack ?? '')
  return exitCodeOf(error)
}

// A reader that closes early, such as `| head`, has what it wanted: end without an error. What keeps a run goes on.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  if (!keepsRun) ending.leave(0)
  if (!isUnread) terminal.tell('nobody reads the output any more; the run goes on to its end')
  isUnread = true
})
onSignal('SIGINT', onInterrupt)
onSignal('SIGTERM', onInterrupt)
try {
  const code = await main(process.argv.slice(2))
  terminal.status('')
  ending.over(code)
} catch (error) {
  terminal.status('')
  const code = report(terminal, error)
  ending.over(stop.signal.aborted ? 130 : code)
}
