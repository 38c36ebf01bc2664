import { once } from 'node:events'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { gateway } from '../../../doors/gateway/listen.ts'
import type { Secrets } from '../../../doors/gateway/secrets.ts'
import { optionsOf } from '../../../run/run/roll-options.ts'
import { resolveSettings } from '../../../run/settings/config.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { settingsOf } from '../../../run/settings/settings.ts'
import { claimRunFolder } from '../../../run/store/run-folder.ts'
import type { Command, Invocation } from '../../command.ts'
import { groupLine, groupRecord } from '../../group-line.ts'
import { counted, refuseOpenDoor, tokenVariable, tryPort } from '../../listening.ts'

/** Where agents find a gateway, who may use it, and how long it waits for them. */
export const gatewayFlags = {
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
} as const

/** Serves a policy to agents in any language, and keeps what they do as a run. */
export const gatewayCommand: Command = {
  name: 'gateway',
  usage: '--policy URI [--out RUN] [--port N]',
  about:
    "Agents ask the policy over OpenAI's Chat Completions or Responses, Anthropic's Messages or\n" +
    "Google's generateContent; every token is kept. POST /attempts opens an attempt and gives its\n" +
    'token, which the agent sends as its API key; POST /attempts/ID/close ends it, with a reward or\n' +
    'scored by --reward. Attempts at one task are a group, and groups are written to --out as by\n' +
    'roll. rLLM finds its gateway under /rllm, OpenEnv its capture server under /openenv. Ctrl-C ends\n' +
    'it in order; started again with the same --out it goes on with that run.',
  examples: [
    'espalier gateway --policy embedded --group 4 --out runs/agents',
    'ESPALIER_TOKEN=… espalier gateway --policy vllm:http://gpu:8000 --reward ./reward.ts#score --host 0.0.0.0',
  ],
  settings: settingsOf('gateway'),
  readsConfig: true,
  own: gatewayFlags,
  positionalCount: [0, 0],
  run: runGateway,
}

async function runGateway(invocation: Invocation): Promise<number> {
  const out = await recordAgents(invocation)
  if (!invocation.json) invocation.terminal.tell(`next  ${commandLine('show', out)}`)
  return 0
}

/** Listens until it is stopped; gives the folder of the run. */
async function recordAgents(invocation: Invocation): Promise<string> {
  const { terminal, json, signal } = invocation
  const { values } = await resolveSettings(invocation)
  const agents = await readGateway(invocation)
  await using claimed = await claimRunFolder(values.out)
  const { out } = claimed
  await using door = await openNamed(`--host ${agents.host}`, () =>
    gateway({
      ...optionsOf('gateway', values),
      ...agents,
      out,
      tell: terminal.tell,
      onGroup: group =>
        terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group)),
    }),
  )
  const { url, policy, someTask = 'one' } = door
  if (json) terminal.print(JSON.stringify({ url, policy, run: out }))
  else terminal.print(`recording agents of ${policy} at ${url} into ${out}`)
  const opens = `curl -d '${JSON.stringify({ task: someTask }).replaceAll("'", "'\\''")}' -H 'content-type: application/json' ${url}/attempts`
  if (!json) terminal.tell(`next  ${opens}`)
  if (!signal.aborted) await once(signal, 'abort')
  return out
}

/** Where a gateway listens and for whom, from its flags; the port is tried, since it listens late. */
export async function readGateway({ own }: Pick<Invocation, 'own'>) {
  const { port = 8700 } = counted('port', own.port)
  const { host = '127.0.0.1' } = own
  const secrets = secretsOf(own)
  refuseOpenDoor(host, secrets.control, tokenVariable(own))
  const { idle: idleSeconds } = counted('idle', own.idle)
  const { grace: graceSeconds } = counted('grace', own.grace)
  await openNamed(`--port ${port}`, () => tryPort(port, host))
  return {
    port,
    host,
    secrets,
    ...counted('attempts', own.attempts),
    ...(idleSeconds !== undefined && { idleSeconds }),
    ...(graceSeconds !== undefined && { graceSeconds }),
  }
}

/** An empty variable is not a secret. */
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
