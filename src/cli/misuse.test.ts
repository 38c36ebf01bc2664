import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCommand } from '../../test/command-line.ts'
import { firstCause } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-misuse-'))
const out = join(folder, 'run')
const tasks = join(folder, 'tasks.jsonl')
const answers = join(folder, 'answers.jsonl')
const parts = join(folder, 'parts.ts')
writeFileSync(tasks, '{"prompt":"2+2?","answer":"4"}\n')
writeFileSync(answers, '{"text":"4"}\n')
writeFileSync(parts, 'export const nothing = 3\n')
const broken = join(folder, 'broken.ts')
writeFileSync(broken, 'throw new Error("mine")\n')

const badTasks = join(folder, 'bad.jsonl')
writeFileSync(badTasks, 'not json\n')
const strangeTasks = join(folder, 'strange.jsonl')
writeFileSync(strangeTasks, '{"question":"2+2?"}\n')
const noTasks = join(folder, 'none.jsonl')
writeFileSync(noTasks, '\n')

const lost = join(folder, 'lost')
mkdirSync(lost)
const noAnswers = join(folder, 'no-answers.jsonl')
writeFileSync(noAnswers, '')
const notParquet = join(folder, 'tasks.parquet')
writeFileSync(notParquet, 'not parquet, whatever its name says\n')

const scripted = ['--policy', `scripted:${answers}`, '--environment', 'single-turn']
const bases: Readonly<Record<string, readonly string[]>> = {
  roll: [...scripted, '--tasks', tasks, '--group', '1'],
  eval: [...scripted, '--tasks', tasks, '--trials', '1'],
  train: ['--policy', 'embedded', '--environment', 'desk', '--steps', '1', '--group', '2'],
}

/** Command, wrong words, and what the error must say: the flag, and what was possible. */
const wrong: readonly (readonly [string, string, RegExp])[] = [
  ['roll', '--condense nope', /--condense nope: No condenser .* Known: .*keyword/],
  ['roll', '--condense keyword:x=1', /--condense .* has no option "x". Known: .*size/],
  ['roll', '--filter nope', /--filter nope: No filter .* Known: .*equal-rewards/],
  ['roll', '--filter overlong:x=1', /has no option "x". Known: from/],
  ['roll', `--filter ${parts}#nothing`, /this is not a filter/],
  ['roll', `--filter ${parts}#absent`, /has no export "absent". It exports: nothing/],
  ['roll', '--guard nope', /--guard nope: No guard .* Known: repetition/],
  ['roll', '--strategy tree --branch nope', /--branch nope: No branch policy .* Known: fixed/],
  ['roll', '--strategy tree --branch fixed:width=0', /width must be a whole number from 1 on/],
  ['roll', '--strategy tree --branch arpo:chance=2', /chance must be a number from 0 to 1/],
  ['roll', '--strategy tree --branch arpo', /starts 8 paths, so --leaves 8 leaves it no branch/],
  ['roll', '--filter dead-loops:calls=1', /calls must be a whole number from 2 on, not "1"/],
  ['roll', '--filter stale:versions=-1', /versions must be a whole number from 0 on, not "-1"/],
  ['roll', '--guard repetition:times=1.5', /times must be a whole number from 2 on, not "1.5"/],
  ['roll', '--guard thinking:9', /guard "thinking" has no variant "9"/],
  ['train', '--look-ahead 3 --max-staleness 1', /--look-ahead 3: .*--max-staleness 1 says/],
  ['roll', '--reward nope', /--reward nope: No reward .* Known: exact-match/],
  ['roll', '--reward ./absent.ts#x', /no file .*absent.ts/],
  ['roll', `--reward ${lost}#x`, /lost is a folder; name a file and what it exports/],
  ['roll', '--reward judge', /--reward judge: .*needs a speaker/],
  ['roll', '--advantage nope', /--advantage nope: .* Known: grpo/],
  ['roll', '--environment nope', /--environment nope: .* Known: .*desk/],
  ['roll', '--environment calculator:x=1', /--environment .*: Unrecognized key: "x"/],
  ['roll', '--policy nope:x', /--policy .*nope:x: .* Known: sglang:/],
  ['roll', '--policy sglnag:http://x', /No policy scheme "sglnag:" .*Did you mean "sglang:"\?/],
  ['roll', '--filter equal-reward', /No filter .* Did you mean "equal-rewards"\?/],
  ['roll', '--policy scripted:absent.jsonl', /--policy .*: there is no file or folder absent/],
  ['roll', '--policy embedded:absent', /--policy .*: there is no file or folder absent/],
  [
    'roll',
    '--model absent/x --offline',
    /absent\/x is not a folder .* --offline forbids .* a folder/,
  ],
  ['roll', '--tool-format nope', /no tool format called "nope". Known: /],
  ['roll', '--tasks absent.jsonl', /--tasks absent.jsonl: there is no such file or run/],
  ['roll', `--tasks ${badTasks}`, /--tasks: .*bad.jsonl:1: not JSON: .* one JSON object per line/],
  ['roll', `--tasks ${strangeTasks}`, /--tasks: .*strange.jsonl:1: Not a task of .*`prompt`/],
  ['roll', `--tasks ${noTasks}`, /none.jsonl holds no tasks/],
  ['eval', `--tasks ${badTasks}`, /--tasks: .*bad.jsonl:1: not JSON/],
  ['train', `--held-out ${badTasks}`, /--held-out: .*bad.jsonl:1: not JSON/],
  ['roll', `--tasks ${badTasks} --dry-run`, /--tasks: .*bad.jsonl:1: not JSON/],
  ['roll', `--tasks ${lost}`, /lost is a folder without a run.json: name a file of tasks or a run/],
  ['roll', `--tasks ${notParquet}`, /--tasks: .*parquet/],
  ['roll', `--policy scripted:${lost}`, /--policy .*: this is a folder; name a file/],
  ['roll', `--policy scripted:${noAnswers}`, /no-answers.jsonl holds no answers: one per line/],
  ['roll', `--policy embedded:${tasks}`, /a part of the path is a file, not a folder/],
  ['roll', `--out ${tasks}`, /tasks.jsonl is a file: --out names a folder for the run/],
  ['roll', `--config ${lost}`, /config .*lost: this is a folder; name a file/],
  ['roll', `--config ${tasks}`, /config .*tasks.jsonl: a config file ends with .ts, .toml or/],
  ['roll', '--policy http://localhost:30000', /as in sglang:http:\/\/localhost:30000/],
  ['roll', '--policy sglang:http://x?logprobs=no', /logprobs is raw or processed, not "no"/],
  ['roll', '--policy sglang:http://x?endpoint=no', /sglang has no parameter "endpoint". Known: /],
  ['roll', `--record ${lost}`, /--record .*lost: this is a folder; name a file/],
  ['roll', `--sinks [{"to":"jsonl","out":"${lost}"}]`, /--sinks jsonl .*: this is a folder/],
  ['roll', '--branch fixed', /--branch changes nothing here: it needs --strategy tree/],
  ['roll', '--leaves 4', /--leaves changes nothing here: it needs --strategy tree/],
  ['roll', '--step-history 2', /--step-history changes nothing here: it needs --strategy step/],
  ['roll', '--threads 2 --cluster local:2', /--threads changes nothing here: .* without --cluster/],
  ['roll', '--split test', /--split changes nothing here: it needs tasks that the environment/],
  ['roll', '--judge openai:http://x', /--judge changes nothing here: it needs --reward judge/],
  ['eval', `--results ${lost}`, /--results .*lost: this is a folder; name a file/],
  ['train', `--environment single-turn --tasks ${tasks}`, /1 tasks are too few .*--held-out/],
  ['roll', '--tasks 0', /--tasks 0: .*a whole number from 1 on/],
  ['roll', '--tasks 3', /"single-turn" makes no tasks of its own: name a file/],
  ['roll', '--environment desk --tasks 1 --split nope', /--split nope: .* Known: train/],
  ['roll', '--sinks [{"to":"nope","out":"x"}]', /--sinks nope: No format .* Known: jsonl/],
  ['roll', '--record /absent/x', /--record .*: there is no folder \/absent/],
  ['roll', '--notify {"kind":"webhook","urlVariable":"ABSENT"}', /the variable ABSENT/],
  ['roll', '--group 0', /--group: 0 is not possible \(expected N\): Too small: .*>=1/],
  ['roll', '--concurrency {"x":1}', /--concurrency: .*Unrecognized key: "x"/],
  ['roll', '--budget {"token":1}', /--budget: .*tokens, seconds, trajectories.*key: "token"/],
  ['roll', '--budget {"money":1}', /money needs a price/],
  ['roll', '--template-variables {x', /--template-variables: not JSON: \{x/],
  ['roll', '--filter nope --dry-run', /--filter nope: No filter/],
  ['eval', '--k 2', /--k 2: pass@2 needs as many attempts per task; --trials is 1/],
  ['eval', '--results /absent/x.json', /--results .*: there is no folder \/absent/],
  ['eval', '--guard nope', /--guard nope: No guard/],
  ['train', '--trainer nope', /--trainer nope: .* Known: embedded, tinker:URL/],
  ['train', '--loss nope', /--loss nope: No loss .* Known: ppo/],
  ['train', '--held-out absent', /--held-out absent: there is no such file/],
  ['train', '--filter nope', /--filter nope: No filter/],
  ['train', '--budget {"trajectories":9}', /1 steps × 32 tasks × 2 = 64.*Set --steps/],
  ['train', `--policy scripted:${answers}`, /cannot change its weights. Train embedded/],
]

describe('a value that is not possible', () => {
  it.each(wrong)('%s %s ends with 2 and says what was', async (command, words, message) => {
    const base = bases[command]!
    // A second environment would stand beside the first.
    const isBare = words.includes('--environment')
    const kept = isBare ? base.filter((word, at) => !isEnvironment(word, base[at - 1])) : base
    const line = [command, ...kept, '--out', out, ...words.split(' ')]
    const { code, stdout, stderr } = await runCommand(line)
    expect([code, stdout], stderr).toEqual([2, ''])
    expect(stderr).toMatch(message)
    expect(existsSync(out)).toBe(false)
  })
})

const isEnvironment = (word: string, before: string | undefined): boolean =>
  [word, before].includes('--environment')

it('code of the user that breaks, and servers that are gone, are failures: 1', async () => {
  const line = ['roll', ...bases.roll!, '--out', out]
  for (const words of [
    ['--reward', `${broken}#x`],
    ['--config', broken],
  ]) {
    const own = await runCommand([...line, ...words])
    expect([own.code, own.stderr]).toEqual([1, expect.stringMatching(/broken.ts:1: mine/)])
  }
  const gone = await runCommand([
    ...[...line, '--retries', '0', '--policy', 'sglang:http://127.0.0.1:9'],
  ])
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('ECONNREFUSED')])
  const far = await runCommand([...line, '--model', 'absent/x', '--hub', 'http://127.0.0.1:9'])
  expect([far.code, far.stderr]).toEqual([1, expect.stringContaining('Give --model a folder')])
  expect(existsSync(out)).toBe(false)
})

it('what went wrong first is told, not what went wrong while things were closed', () => {
  const first = new Error('the disk is full')
  const closing = Object.assign(new Error('closing failed'), { suppressed: first })
  expect(firstCause(Object.assign(new Error('twice'), { suppressed: closing }))).toBe(first)
})

describe('a command that is given the wrong thing', async () => {
  const run = join(folder, 'finished')
  await runCommand(['roll', ...bases.roll!, '--out', run])
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => server.close())
  const { port } = server.address() as AddressInfo
  const served = [...scripted, '--port', `${port}`]

  const taught = ['--environment', 'desk', '--out', out, '--demonstrations']

  it.each([
    [['export', run, '--to', 'jsonl', '--out', lost], /--out .*lost: this is a folder/],
    [['import', 'absent.jsonl', '--from', 'slime', '--out', out], /no file absent.jsonl/],
    [['import', noAnswers, '--from', 'slime', '--out', out], /holds no trajectories/],
    [['import', badTasks, '--from', 'slime', '--out', out], /bad.jsonl:1: not JSON/],
    [['import', lost, '--from', 'slime', '--out', out], /this is a folder; name a file/],
    [['import', answers, '--from', 'openai-sft', '--out', out], /messages only: name the model/],
    [['fork', run, '1/0/0', '--at', '9', '--out', out], /can be forked at 0 to 0, not at 9/],
    [['fork', run, '1/0/0', '--at', 't999', '--out', out], /is not inside a turn/],
    [['fork', run, '1/0/0', '--at', '0', '--edit', 'absent.txt'], /--edit absent.txt: there is no/],
    [['fork', run, '1/0/0', '--at', '0', '--edit', lost], /--edit .*: this is a folder/],
    [['audit', run, '--policy', `scripted:${answers}`], /cannot score given tokens/],
    [['doctor', lost], /lost has no tokenizer.json/],
    [['check', 'single-turn', '--tasks', noTasks], /none.jsonl holds no tasks to check with/],
    [['teach', ...taught, noAnswers], /--demonstrations .* holds no conversation/],
    [['teach', ...taught, lost], /--demonstrations .*: this is a folder; name a file/],
    [['teach', ...taught, 'absent'], /no file or run absent with demonstrations/],
    [['dataset', 'condensed-sft', noTasks, '--out', `${out}.jsonl`], /holds no tasks/],
    [['dataset', 'condenser', 'absent.jsonl', '--out', `${out}.jsonl`], /no task file absent/],
    [['dataset', 'condensed-sft', '4', '--splits', 'none', '--out', tasks], /is there already/],
    [['tau', 'pack', lost, out], /No tau-bench checkout in .*lost/],
    [['init', run], /finished holds a run: name an empty folder/],
    [['init', tasks], /tasks.jsonl is a file: name a folder/],
    [['view', run, '--port', '65536'], /--port takes a whole number from 0 to 65535, not "65536"/],
    [['view', run, '--static', ''], /--static is empty: give it a value/],
    [['view', run, '--host', ''], /--host is empty: give it a value/],
    [['view', run, '--most', '5'], /--most changes nothing here: it needs --static/],
    [
      ['view', run, '--static', `${out}.html`, '--port', '0'],
      /--port changes nothing here: --static serves nothing/,
    ],
    [['export', run, '--out', out, '--importance', 'nope'], /No importance weight called "nope"/],
    [['show', run, '1', '--tokens'], /--tokens changes nothing here: .* "1" is a group/],
    [['show', run, '1/0/0', '--model', lost], /--model changes nothing here: it needs --tokens/],
    [['show', run, '1/0/0', '--tokens', '--as-seen'], /two views .* give one of them/],
    [['roll', '-g', '4'], /espalier roll has no flag -g. `espalier roll --help` lists them/],
    [['roll', '-group', '4'], /espalier roll has no flag -group. Did you mean --group\?/],
    ...['serve', 'gateway', 'rollouts'].map((name): [string[], RegExp] => [
      [name, '--host', '0.0.0.0'],
      /--host 0.0.0.0 lets others in, who need a token: put one into the variable ESPALIER_TOKEN/,
    ]),
    [['serve', '--threads', '0'], /--threads takes a whole number from 1 to 64, not "0"/],
    [
      ['worker', '--cluster', 'postgres://u@h/d', '--lease', '0'],
      /--lease takes .* from 1 to 86400/,
    ],
    [
      ['worker', '--cluster', 'postgres://u@h/d', '--grace', '9000000'],
      /--grace takes .* to 86400/,
    ],
    [['serve', '--port', `${port}`], /--port \d+: something listens there already/],
    [
      [
        'roll',
        '--policy',
        'openai:http://127.0.0.1:9/v1#m',
        '--served-model',
        'm',
        '--environment',
        'desk',
        '--out',
        out,
      ],
      /--policy \S+#m names its model, and so does --served-model: give one/,
    ],
    [['rollouts', ...served, '--out', out], /--port \d+: something listens there already/],
    [['roll', ...bases.roll!, '--out', out, '--metrics-port', `${port}`], /listens there already/],
  ])('%s ends with 2, says what was wrong and leaves nothing', async (words, message) => {
    const before = readdirSync(folder)
    const { code, stdout, stderr } = await runCommand(words)
    expect([code, stdout], stderr).toEqual([2, ''])
    expect(stderr).toMatch(message)
    expect(readdirSync(folder)).toEqual(before)
  })
})
