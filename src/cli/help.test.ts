import { describe, expect, it } from 'vitest'
import { demoDefaults } from '../learn/learn/demo.ts'
import { flagOf } from '../run/settings/settings.ts'
import { demoCommand } from './commands/demo.ts'
import { evalCommand } from './commands/eval.ts'
import { rollCommand } from './commands/roll.ts'
import { commandHelp, folded } from './help.ts'

/** The line of help about one flag. */
function lineOf(help: string, flag: string): string | undefined {
  return help.split('\n').find(line => line.trim().startsWith(`--${flag}`))
}

describe('the help of a command', () => {
  it('tells the defaults that this command has, not those of others', () => {
    const help = commandHelp(demoCommand)
    expect(lineOf(help, 'steps')).toContain(`(default: ${demoDefaults.steps})`)
    expect(lineOf(help, 'seed')).toContain(`(default: ${demoDefaults.seed})`)
    expect(lineOf(commandHelp(rollCommand), 'seed')).toContain('(default: 0)')
  })

  it('offers a config file only where one is read', () => {
    expect(lineOf(commandHelp(demoCommand), 'config')).toBeUndefined()
    expect(lineOf(commandHelp(rollCommand), 'config')).toBeDefined()
  })
})

describe('the help of a command with many settings', () => {
  it('begins with what only this command does, then goes topic by topic', () => {
    const help = commandHelp(evalCommand)
    const headings = help.split('\n').filter(line => /^[A-Z].*:$/.test(line))
    expect(headings.slice(0, 2)).toEqual(['Evaluation:', 'What is rolled:'])
    expect(headings.at(-1)).toBe('Examples:')
    for (const name of evalCommand.settings) expect(lineOf(help, flagOf(name))).toBeDefined()
  })
})

describe('help in a narrow terminal', () => {
  const help = commandHelp(rollCommand)
  const words = (text: string): readonly string[] => text.split(/\s+/)

  it.each([40, 80, 120])('of %i columns has no longer lines, and every word', width => {
    const lines = folded(help, width).split('\n')
    expect(lines.filter(line => line.length > width && /\s/.test(line.trim()))).toEqual([])
    expect(words(lines.join('\n'))).toEqual(words(help))
  })

  it('keeps what a flag does beside it, and stays whole where nobody reads it in columns', () => {
    const below = folded(help, 80).split('\n')
    const at = below.findIndex(line => line.includes('--reference URI'))
    expect(below[at + 1]).toMatch(/^ {37}\S/)
    expect(folded(help)).toBe(help)
  })
})
