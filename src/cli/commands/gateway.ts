import { once } from 'node:events'
import { elsewhere } from '../../gateway/elsewhere.ts'
import { openGateway } from '../../gateway/open-gateway.ts'
import type { Secrets } from '../../gateway/secrets.ts'
import { serveGateway } from '../../gateway/server.ts'
import { openRollParts } from '../../run/open-parts.ts'
import { openRun } from '../../run/open-run-folder.ts'
import type { RollParts } from '../../run/roll-groups.ts'
import { rollOptionsOf } from '../../run/roll-options.ts'
import { resolveSettings } from '../../settings/config.ts'
import { openNamed } from '../../settings/open-named.ts'
import type { SettingName } from '../../settings/settings.ts'
import { claimRunFolder } from '../../store/run-folder.ts'
import { tasksById } from '../../tasks/tasks-by-id.ts'
import { openObservers } from '../../watch/observe.ts'
import { writeReport } from '../../watch/run-report.ts'
import type { Command, Invocation } from '../command.ts'
import { groupLine, groupRecord } from '../group-line.ts'
import { counted, tryPort } from '../listening.ts'
import { rollSettings } from './roll.ts'

/** Settings of rolling that say how worlds are walked, which agents elsewhere do by themselves. */
const walking: readonly SettingName[] = [
  'strategy',
  'branch',
  'leaves',
  'stepHistory',
  'condense',
  'record',
  'budget',
  'unfinished',
  'adaptive',
  'keep',
  'overSample',
  'refill',
]

/** Serves a policy to agents in any language, and keeps what they do as a run. */
export const gatewayCommand: Command = {
  name: 'gateway',
  summary: 'Record and reward agents in any language, by their base URL',
  usage: '--policy URI [--out RUN] [--port N]',
  about:
    "Agents ask the policy over OpenAI's Chat Completions or Responses, Anthropic's Messages or\n" +
    "Google's generateContent; every token is kept. POST /attempts opens an attempt and gives its\n" +
    'token, which the agent sends as its API key; POST /attempts/ID/close ends it, with a reward or\n' +
    'scored by --reward. Attempts at one task are a group, and groups are written to --out as by\n' +
    'roll. rLLM finds its gateway under /rllm, OpenEnv its capture server under /openenv.',
  examples: [
    'espalier gateway --policy embedded --group 4 --out runs/agents',
    'ESPALIER_TOKEN=… espalier gateway --policy vllm:http://gpu:8000 --reward ./reward.ts#score --host 0.0.0.0',
  ],
  settings: rollSettings.filter(name => !walking.includes(name)),
  readsConfig: true,
  own: {
    port: { help: 'The port; 0 takes any free one (default: 8700)', argument: 'N' },
    host: { help: 'The address to listen on (default: 127.0.0.1)', argument: 'HOST' },
    attempts: { help: 'Attempts that may be open at one time (default: 4096)', argument: 'N' },
    idle: {
      help: 'Seconds without a request after which an attempt is closed (default: 600)',
      argument: 'N',
    },
    grace: {
      help: 'Seconds that requests under way are given when it is stopped (default: 10)',
      argument: 'N',
    },
    'token-variable': {
      help: 'The variable with the token that opens and closes attempts (default: ESPALIER_TOKEN)',
      argument: 'NAME',
    },
    'model-token-variable': {
      help: 'The variable with the token that may use the model in any attempt (default: ESPALIER_MODEL_TOKEN)',
      argument: 'NAME',
    },
    'read-token-variable': {
      help: 'The variable with the token that may only read (default: ESPALIER_READ_TOKEN)',
      argument: 'NAME',
    },
  },
  words: [0, 0],
  run: runGateway,
}

async function runGateway(invocation: Invocation): Promise<number> {
  const { own, terminal, json, signal } = invocation
  const { values } = await resolveSettings(invocation)
  const { port = 8700 } = counted('port', own.port)
  const { host = '127.0.0.1' } = own
  const { attempts: most } = counted('attempts', own.attempts)
  const { idle: idleSeconds } = counted('idle', own.idle)
  const { grace = 10 } = counted('grace', own.grace)
  await openNamed(`--port ${port}`, () => tryPort(port, host))
  const options = { ...rollOptionsOf(values), tell: terminal.tell }
  const environment = values.environment ?? elsewhere
  await using opened = await openRollParts(environment, values.tasks, options)
  await using claimed = await claimRunFolder(values.out)
  const { out } = claimed
  const record = { out, kind: 'gateway', config: values, unfinished: 'restart' } as const
  await using run = await openRun(opened.parts, record)
  const observing = { out, tell: terminal.tell, renderer: opened.parts.renderer }
  await using observers = await openObservers(values, observing)
  const { listen } = observers
  const parts: RollParts = { ...opened.parts, writer: run.parts.writer!, listen }
  await using gateway = openGateway({
    parts,
    secrets: secretsOf(own),
    tasks: await tasksOf(parts, values.tasks),
    onGroup: group => terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group)),
    ...(most !== undefined && { most }),
    ...(idleSeconds !== undefined && { idleSeconds }),
  })
  await using server = await openNamed(`--host ${host}`, () =>
    serveGateway(gateway, { port, host }),
  )
  const { url } = server
  if (json) terminal.print(JSON.stringify({ url, policy: parts.policy.name, run: out }))
  else terminal.print(`recording agents of ${parts.policy.name} at ${url} into ${out}`)
  if (!json)
    terminal.tell(
      `next  curl -d '{"task":"one"}' -H 'content-type: application/json' ${url}/attempts`,
    )
  if (!signal.aborted) await once(signal, 'abort')
  await gateway.attempts.drain(grace)
  await server[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
  await run.finish()
  await writeReport(out, observers.notes())
  return 0
}

async function tasksOf({ environment, seed = 0, split }: RollParts, source?: string | number) {
  return await tasksById(environment, source, { seed, ...(split !== undefined && { split }) })
}

/** A variable that is set to nothing is no secret. */
function secretsOf(own: Invocation['own']): Secrets {
  const read = (flag: string, otherwise: string): string | undefined =>
    process.env[own[flag] ?? otherwise] || undefined
  const control = read('token-variable', 'ESPALIER_TOKEN')
  const model = read('model-token-variable', 'ESPALIER_MODEL_TOKEN')
  const reading = read('read-token-variable', 'ESPALIER_READ_TOKEN')
  return {
    ...(control !== undefined && { control }),
    ...(model !== undefined && { model }),
    ...(reading !== undefined && { read: reading }),
  }
}
