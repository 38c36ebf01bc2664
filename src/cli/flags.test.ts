import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resolveSettings } from '../run/settings/config.ts'
import type { Setting } from '../run/settings/setting.ts'
import { flagOf, type SettingName, settings } from '../run/settings/settings.ts'
import { commandNames, loadCommand } from './commands.ts'
import { isNegatable, readFlags } from './flags.ts'
import { commandHelp } from './help.ts'

const loaded = await Promise.all(commandNames.map(name => loadCommand(name)))
const commands = loaded.flatMap(command => command ?? [])
const settingOf = (name: SettingName): Setting => settings[name]
const isSwitch = (name: SettingName): boolean => settingOf(name).argument === undefined

const config = join(mkdtempSync(join(tmpdir(), 'espalier-flags-')), 'espalier.config.json')
writeFileSync(
  config,
  '{ "sentinels": true, "adaptive": true, "filters": ["overlong"], "condense": "keyword" }',
)

/** The settings of `roll` with the config above. */
async function rolledWith(...argv: readonly string[]) {
  const roll = commands.find(({ name }) => name === 'roll')!
  return (await resolveSettings({ ...readFlags(roll, argv), config })).values
}

describe('a list', () => {
  it.each(['policy', 'filter', 'guard', 'stop', 'seat', 'reward', 'importance'])(
    'of --%s has no empty word, and none is read as a number',
    async flag => {
      await expect(rolledWith(`--${flag}`, '')).rejects.toThrow(
        new RegExp(`^--${flag}: \\[""\\] is not possible .*Too small`),
      )
      await expect(rolledWith(`--${flag}`, '')).rejects.not.toThrow('received number')
    },
  )

  it('of numbers is separated by commas, and an empty place in it is no zero', () => {
    const command = commands.find(({ name }) => name === 'eval')!
    expect(readFlags(command, ['--k', '1,2', '--k', '4']).flags.k).toEqual([1, 2, 4])
    expect(() => readFlags(command, ['--k', '1,'])).toThrow(/--k: \["1,"\] is not possible/)
  })
})

describe('a flag with no- before its name', () => {
  it('turns off every switch of every command, and the help of that command says so', () => {
    for (const command of commands) {
      const words = Array.from({ length: command.positionalCount[0] }, () => 'x')
      for (const name of command.settings.filter(isSwitch)) {
        const { flags } = readFlags(command, [...words, `--no-${flagOf(name)}`])
        expect(flags[name], `${command.name} --no-${flagOf(name)}`).toBe(false)
        const shown = [`--no-${flagOf(name)}`, `--[no-]${flagOf(name)}`]
        expect(
          shown.some(flag => commandHelp(command).includes(flag)),
          command.name,
        ).toBe(true)
      }
    }
  })

  it('takes back what a config sets: switches, lists, and what has no value otherwise', async () => {
    expect(await rolledWith()).toMatchObject({ sentinels: true, filters: ['overlong'] })
    const flags = ['--no-sentinels', '--no-adaptive', '--no-filter', '--no-condense']
    const { sentinels, adaptive, filters, condense } = await rolledWith(...flags)
    expect({ sentinels, adaptive, filters }).toEqual({
      sentinels: false,
      adaptive: false,
      filters: [],
    })
    expect(condense).toBeUndefined()
  })

  it('exists where it means something, and does not stand beside its opposite', async () => {
    await expect(rolledWith('--no-temperature')).rejects.toThrow(/no flag --no-temperature/)
    await expect(rolledWith('--filter', 'overlong', '--no-filter')).rejects.toThrow(/contradict/)
    expect(isNegatable(settings.temperature)).toBe(false)
  })
})

it.each(['keep', 'over-sample', 'unfinished', 'budget'])(
  'rollouts refuses --%s, which it would have no use for',
  name => {
    const rollouts = commands.find(each => each.name === 'rollouts')!
    expect(() => readFlags(rollouts, [`--${name}`, '1'])).toThrow(`no flag --${name}`)
  },
)
