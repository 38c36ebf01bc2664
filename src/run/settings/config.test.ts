import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { resolveSettings } from './config.ts'
import { configSchema } from './config-schema.ts'
import { settings } from './settings.ts'

function file(name: string, text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'espalier-config-')), name)
  writeFileSync(path, text)
  return path
}

const toml = `# comment
environment = "desk"
group = 4

[budget]
tokens = 1000

[profiles.laptop]
group = 2
temperature = 0.5
`

describe('settings', () => {
  it('that are wrong are all told at once', async () => {
    const config = file('wrong.toml', 'gruop = 2\ntemperature = "hot"\n')
    const wrong = resolveSettings({ config, flags: {} })
    await expect(wrong).rejects.toThrow(/no setting called "gruop"[\s\S]*\n.*temperature: "hot"/)
  })

  it('are laid over each other: default, file, profile, flag; each knows where it came from', async () => {
    const config = file('c.toml', toml)
    const { values, origins } = await resolveSettings({
      config,
      profile: 'laptop',
      flags: { temperature: 0.7 },
    })
    expect(values).toMatchObject({
      environment: 'desk',
      group: 2,
      temperature: 0.7,
      topP: 1,
      budget: { tokens: 1000 },
    })
    expect([origins.environment, origins.group, origins.temperature, origins.topP]).toEqual([
      config,
      `${config} profile laptop`,
      'flag',
      'default',
    ])
  })

  it('come from TypeScript, TOML and JSON alike', async () => {
    const typed = file('c.ts', 'export default { group: 3, profiles: {} }\n')
    const json = file('c.json', '{ "$schema": "./schema.json", "group": 3 }')
    for (const config of [typed, json, file('c.toml', 'group = 3')]) {
      expect((await resolveSettings({ config, flags: {} })).values.group).toBe(3)
    }
  })

  it('name several environments as a list, which is one name of the run', async () => {
    const config = file('c.json', '{ "environment": ["desk:weight=2", "calculator"] }')
    const { values } = await resolveSettings({ config, flags: {} })
    expect(values.environment).toBe('desk:weight=2 + calculator')
    const again = await resolveSettings({ flags: { environment: values.environment! } })
    expect(again.values.environment).toBe(values.environment)
  })

  const refused = (config: string, profile?: string): Promise<unknown> =>
    resolveSettings({ config, flags: {}, profile }).then(
      () => 'taken',
      (error: Error) => error.message.replace(/^\S*espalier-config-\w+\//, ''),
    )

  it('that are wrong say where they stand and what was possible', async () => {
    expect(await refused(file('c.toml', 'seed = 1\ngruop = 8\n'))).toBe(
      'c.toml:2: no setting called "gruop". Did you mean "group"?',
    )
    expect(await refused(file('c.json', '{\n  "seed": 1,\n  "strategy": "forest"\n}'))).toMatch(
      /^c\.json:3: strategy: "forest" is not possible \(expected chain\|tree\|step\): .*"chain"/,
    )
    expect(await refused(file('c.ts', 'export default {\n  budget: { tokns: 1 },\n}\n'))).toMatch(
      /^c\.ts:2: budget: .*tokns/,
    )
    expect(await refused(file('c.toml', toml.replace('0.5', '-1')), 'laptop')).toMatch(
      /^c\.toml:10 \(profile laptop\): temperature: -1 is not possible/,
    )
    expect(await refused(file('c.toml', toml), 'lptop')).toBe(
      'c.toml has no profile "lptop". It has: laptop.',
    )
    expect(await refused(file('c.toml', 'a = 1\nb = = 2\n'))).toMatch(/^c\.toml:2: /)
    expect(await refused(file('c.json', '{\n  "group": 8,\n}'))).toMatch(/^c\.json:3: /)
    expect(await refused(file('c.ts', 'export const x = 1\n'))).toMatch(/has no default export/)
  })

  it('of every profile are checked, whichever is chosen', async () => {
    expect(await refused(file('c.ts', 'export default {\n  profiles: 5,\n}\n'))).toBe(
      'c.ts:2: profiles: 5 is not possible: profiles are objects with settings, by name',
    )
    expect(await refused(file('c.json', '{\n"profiles": {\n"laptop": []\n}\n}'))).toMatch(
      /^c\.json:3.*: profiles\.laptop: \[\] is not possible/,
    )
    expect(await refused(file('c.toml', toml.replace('0.5', '-1')))).toMatch(
      /^c\.toml:10 \(profile laptop\): temperature: -1 is not possible/,
    )
  })

  it('may stand behind a byte-order mark', async () => {
    for (const name of ['c.json', 'c.toml']) {
      const text = name === 'c.json' ? '{ "group": 3 }' : 'group = 3'
      const { values } = await resolveSettings({ config: file(name, `\uFEFF${text}`), flags: {} })
      expect(values.group).toBe(3)
    }
  })

  it('that are objects offer the nearest of their names', async () => {
    expect(await refused(file('c.json', '{ "budget": { "token": 1 } }'))).toMatch(
      /Unrecognized key: "token"\. Did you mean "tokens"\?$/,
    )
    expect(await refused(file('c.json', '{ "concurrency": { "x": 1 } }'))).toMatch(
      /Unrecognized key: "x"\. Known: rollouts, policy, tools, environment, reward$/,
    )
  })

  it('have a JSON schema that takes what is right and refuses what is wrong', () => {
    const check = new Ajv2020({ strict: false, validateFormats: false }).compile(configSchema())
    const good = {
      group: 4,
      policy: ['a', 'b'],
      profiles: { x: { group: 2 } },
      $schema: './s.json',
    }
    expect(check(good)).toBe(true)
    for (const bad of [{ gruop: 4 }, { group: 0 }, { profiles: { x: { group: 'many' } } }]) {
      expect(check(bad)).toBe(false)
    }
    const defaults = Object.fromEntries(
      Object.entries(settings).flatMap(([name, setting]) =>
        'default' in setting ? [[name, setting.default]] : [],
      ),
    )
    expect(check(defaults), JSON.stringify(check.errors)).toBe(true)
  })
})
