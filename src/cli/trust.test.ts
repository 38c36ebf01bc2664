import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../test/command-line.ts'
import { readManifest, writeManifest } from '../run/store/run-folder.ts'
import { enterRun } from './enter-run.ts'
import { namedByRun, trustRun } from './trust.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-trust-'))
const run = join(folder, 'run')
const trace = join(folder, 'trace')
const code = join(folder, 'planted.mjs')
const said = `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(trace)}, '')\n`
writeFileSync(code, `${said}export const part = () => 1`)
writeFileSync(join(folder, 'answers.jsonl'), '{"text":"2"}\n')
const rolled = await runCommand([
  ...[
    'roll',
    '--policy',
    `scripted:${join(folder, 'answers.jsonl')}`,
    '--environment',
    'calculator',
  ],
  ...['--tasks', '1', '--group', '1', '--out', run],
])
expect(rolled.code, rolled.stderr).toBe(0)
const begun = await readManifest(run)

it.each([
  ['score', run],
  ['score', run, '--probe'],
  ['fork', run, '0/0/0', '--at', '0', '--samples', '1', '--out', join(folder, 'forked')],
])('H8: %s runs no code that a received run names before it is trusted', async (...words) => {
  for (const planted of [{ reward: [`${code}#part`] }, { environment: `${code}#part` }]) {
    await writeManifest(run, { ...begun, config: { ...begun.config, ...planted } })
    const { code: exit, stderr } = await runCommand(words)
    expect([exit, stderr]).toEqual([2, expect.stringContaining('add --trust')])
    expect(existsSync(trace)).toBe(false)
  }
})

it('H8: what --trust allows is run', async () => {
  await writeManifest(run, { ...begun, config: { ...begun.config, reward: [`${code}#part`] } })
  const { code: exit, stderr } = await runCommand(['score', run, '--trust'])
  expect([exit, existsSync(trace)], stderr).toEqual([0, true])
})

it('H8: parts, programs and servers count unless a flag names them; files of tasks do not', () => {
  const values = {
    ...{
      environment: 'tau2:retail,root=.',
      policy: ['sglang:http://elsewhere'],
      tasks: './t.jsonl',
    },
    ...{ condense: './condense.ts#mine', reward: ['judge'], judge: 'openai:http://there' },
  }
  const all = [
    'tau2:retail,root=.',
    'sglang:http://elsewhere',
    'openai:http://there',
    './condense.ts#mine',
  ]
  expect([...namedByRun({ values, samples: true }, {})].sort()).toEqual(all.toSorted())
  const flags = { judge: 'openai:http://there', condense: './condense.ts#mine' }
  expect(namedByRun({ values, samples: false }, flags)).toEqual(['tau2:retail,root=.'])
  expect(namedByRun({ values: { environment: 'desk:length=long' }, samples: true }, {})).toEqual([])
  const condense = 'model:policy=openai:http://far'
  expect(namedByRun({ values: { condense }, samples: true }, {})).toContain(condense)
})

it('H4, H7: a received run says neither where keys are sent nor what is written, unless it is resumed', async () => {
  const record = join(folder, 'record.jsonl')
  const planted = { hub: 'http://127.0.0.1:9', record, track: ['mlflow:http://127.0.0.1:9'] }
  await writeManifest(run, { ...begun, config: { ...begun.config, ...planted } })
  const words = ['--at', '0', '--samples', '1', '--out', join(folder, 'unrecorded')]
  const { code: exit, stderr } = await runCommand(['fork', run, '0/0/0', ...words])
  expect([exit, existsSync(record)], stderr).toEqual([0, false])
  const invocation = { ...asking(true, []), flags: { record: 'mine.jsonl' } }
  const { values } = await enterRun(invocation)
  expect([values.hub, values.record, values.track]).toEqual([
    'https://huggingface.co',
    'mine.jsonl',
    undefined,
  ])
  const { values: resumed } = await enterRun(invocation, { resumes: true })
  expect(resumed.hub).toBe(planted.hub)
  expect([...namedByRun({ values: resumed, samples: true }, {})]).toEqual(
    expect.arrayContaining([planted.hub, planted.track[0]]),
  )
})

it('H8: a terminal is asked, and only a yes is one', async () => {
  const use = { values: { environment: './world.ts' }, samples: false }
  const questions: string[] = []
  await trustRun(run, use, asking(true, questions))
  await expect(trustRun(run, use, asking(false, questions))).rejects.toThrow('add --trust')
  expect(questions[0]).toContain('./world.ts')
})

/** A command at a terminal at which somebody answers questions. */
function asking(answer: boolean, questions: string[]) {
  return {
    ...{ positionals: [run], flags: {}, own: {}, lists: {}, json: false },
    ...{ config: undefined, profile: undefined, signal: new AbortController().signal },
    terminal: {
      ...{ print: () => {}, tell: () => {}, status: () => {}, isLive: true, isColoured: false },
      ...{ paint: (_: unknown, text: string) => text, width: 100 },
      ask: async (question: string) => {
        questions.push(question)
        return answer
      },
    },
  }
}
