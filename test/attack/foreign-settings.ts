import { namedByRun } from '../../src/cli/trust.ts'
import { checkSettings } from '../../src/run/settings/check-settings.ts'
import type { Settings } from '../../src/run/settings/settings.ts'
import { type Attack, hold, oneOf } from './attack.ts'

const server = 'http://attacker.example'

/** Settings of a run folder through which it could reach a server, a program or a file that nobody else named. */
const planted: readonly Readonly<Record<string, unknown>>[] = [
  ...['sglang', 'vllm', 'llama-cpp', 'openai', 'tinker'].map(scheme => ({
    policy: [`${scheme}:${server}`],
  })),
  { policy: ['embedded:hf:attacker/model'] },
  { hub: server },
  { judge: `openai:${server}`, reward: ['judge'] },
  { reference: `vllm:${server}` },
  { teacher: [`vllm:${server}`] },
  { seats: [`other=openai:${server}`] },
  { condense: `model:policy=openai:${server}` },
  { environment: `openenv:${server}` },
  { environment: './world.ts#world' },
  { environment: 'harness:acp,command=sh -c id' },
  { environment: 'python:attacker' },
  { sandbox: `remote:${server}` },
  { reward: ['./reward.ts#right'] },
  { filters: ['/tmp/filter.mjs#drop'] },
  { track: [`mlflow:${server}`] },
  { notify: [{ kind: 'command', command: ['sh', '-c', 'id'] }] },
  { sinks: [{ to: 'jsonl', out: '/tmp/rows.jsonl' }] },
  { record: '/tmp/cassette.jsonl' },
  { segments: 's3://attacker/prefix' },
  { cluster: 'postgres://attacker.example/queue' },
  { traces: server },
]

const harmless: readonly Readonly<Record<string, unknown>>[] = [
  { policy: ['embedded'] },
  { environment: 'desk:length=long' },
  { condense: 'keep-last-turns:keep=2' },
  { maxTurns: 4 },
  { temperature: 0.5 },
  { tasks: 'tasks.jsonl' },
  { stop: ['\n'] },
]

/** Settings of a run that somebody received: what reaches out of it is asked about, whatever stands beside it. */
export const foreignSettings: Attack = {
  name: 'foreign settings',
  promise: 'H8',
  share: 4,
  async open() {
    const valid = planted.filter(each => isPossible(each))
    hold(valid.length > planted.length - 3, `${planted.length - valid.length} are no settings`)
    return draw => {
      const values = { ...oneOf(harmless, draw), ...oneOf(harmless, draw) }
      const wanted = oneOf(valid, draw)
      const named = namedByRun({ values: { ...values, ...wanted } as Settings, samples: true }, {})
      hold(named.length > 0, `${JSON.stringify(wanted)} is not asked about`)
      const alone = namedByRun({ values: values as Settings, samples: true }, {})
      hold(alone.length === 0, `${JSON.stringify(values)} is asked about: ${alone.join(', ')}`)
    }
  },
}

function isPossible(values: Readonly<Record<string, unknown>>): boolean {
  try {
    checkSettings(values, 'run.json')
    return true
  } catch {
    return false
  }
}
