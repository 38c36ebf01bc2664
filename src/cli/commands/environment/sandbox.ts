import { once } from 'node:events'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { serveSandbox } from '../../../doors/hosting/sandbox-server.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { usualLimits } from '../../../worlds/workspaces/contract.ts'
import { checkSandbox } from '../../../worlds/workspaces/world/check.ts'
import { openSandbox } from '../../../worlds/workspaces/world/kinds.ts'
import { workspaceOptions } from '../../../worlds/workspaces/world/named.ts'
import { openWorkspaces } from '../../../worlds/workspaces/world/open.ts'
import { type Command, type Invocation, MisuseError, unknownVerb } from '../../command.ts'
import { counted, doorFlags, keyOption, readDoor, tryPort } from '../../listening.ts'

/** Serves workspaces on this machine to runs on other machines, and tries sandboxes of any kind. */
export const sandboxCommand: Command = {
  name: 'sandbox',
  usage: 'serve | check KIND[:ITEM,…]',
  about:
    'Commands of coding agents run here, within walls of this machine or in containers, while the\n' +
    'attempts are rolled on another: repair:sandbox=URL and harbor:DIR,sandbox=URL. Limits are those\n' +
    'of this server; a workspace that nobody uses for an hour is ended.\n' +
    'check tries a sandbox of any kind, with your key if it is a vendor’s: start, run, fork, end, cost.',
  examples: [
    'E2B_API_KEY=… espalier sandbox check e2b',
    'DAYTONA_API_KEY=… espalier sandbox check daytona:lease=600',
    'espalier sandbox serve --port 8100',
    'ESPALIER_TOKEN=… espalier sandbox serve --engine podman --host 0.0.0.0',
  ],
  settings: [],
  own: {
    port: { help: 'The port; 0 takes any free one (default: 8100)', argument: 'N' },
    sessions: { help: 'Workspaces at one time (default: 64)', argument: 'N' },
    engine: { help: 'docker or podman (default: walls of the system)', argument: 'NAME' },
    memory: { help: 'MiB of memory of each process (default: 4096)', argument: 'N' },
    disk: { help: 'MiB that files may take (default: 512)', argument: 'N' },
    walls: { help: 'none accepts that nothing keeps commands from this machine', argument: 'NAME' },
    ...doorFlags,
  },
  positionalCount: [1, 2],
  run: runSandbox,
}

function runSandbox(invocation: Invocation): Promise<number> {
  const [verb, kind] = invocation.positionals
  if (verb === 'serve' && kind === undefined) return serve(invocation)
  if (verb === 'check' && kind !== undefined) return check(kind, invocation)
  if (verb === 'check') throw new MisuseError('sandbox check takes a kind: e2b, daytona, docker, …')
  if (verb === 'serve') throw new MisuseError(`sandbox serve takes no ${kind}`)
  throw unknownVerb('sandbox', verb, ['serve', 'check'])
}

/** Tries a sandbox; says what it found step by step. */
async function check(kind: string, { json, terminal, signal }: Invocation): Promise<number> {
  const workspaces = await openNamed(kind, () => openSandbox(kind, usualLimits))
  let failed = 0
  for await (const { step, passed, detail, seconds } of checkSandbox(workspaces, { signal })) {
    if (!passed) failed++
    if (json) terminal.print(JSON.stringify({ step, passed, detail, seconds }))
    else terminal.print(`${passed ? '✓' : '✗'} ${step.padEnd(8)} ${detail} (${seconds} s)`)
  }
  return failed === 0 ? 0 : 1
}

async function serve(invocation: Invocation): Promise<number> {
  const { own, json, terminal, signal } = invocation
  const { port = 8100 } = counted('port', own.port)
  const { sessions } = counted('sessions', own.sessions)
  if (sessions === 0) throw new MisuseError('--sessions takes a number from 1 on')
  const { engine, memory, disk, walls } = own
  const read = workspaceOptions.safeParse({ memory, disk, walls })
  if (!read.success) {
    const [issue] = read.error.issues
    throw new MisuseError(`--${String(issue?.path[0])}: ${issue?.message}`)
  }
  if (engine !== undefined && engine !== 'docker' && engine !== 'podman') {
    throw new MisuseError('--engine: docker or podman')
  }
  const door = readDoor(invocation)
  await openNamed(`--port ${port}`, () => tryPort(port, door.host))
  const { workspaces } = openWorkspaces({ ...read.data, sandbox: engine })
  await using server = await openNamed(`--host ${door.host}`, () =>
    serveSandbox(workspaces, { port, ...(sessions && { sessions }), ...door }),
  )
  const { url } = server
  if (json) terminal.print(JSON.stringify({ url, isolation: workspaces.isolation }))
  else terminal.print(`serving workspaces (${workspaces.name}) at ${url}`)
  const named = `repair:sandbox=${url}${keyOption(own)}`
  terminal.tell(`next  ${commandLine('check', named, '--tasks', '1')}`)
  if (!signal.aborted) await once(signal, 'abort')
  return 0
}
