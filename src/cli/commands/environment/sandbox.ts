import { once } from 'node:events'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { serveSandbox } from '../../../doors/hosting/sandbox-server.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { workspaceOptions } from '../../../worlds/workspaces/world/named.ts'
import { openWorkspaces } from '../../../worlds/workspaces/world/open.ts'
import { type Command, type Invocation, MisuseError, unknownVerb } from '../../command.ts'
import { counted, doorFlags, keyOption, readDoor, tryPort } from '../../listening.ts'

/** Serves workspaces on this machine to runs on other machines. */
export const sandboxCommand: Command = {
  name: 'sandbox',
  usage: 'serve',
  about:
    'Commands of coding agents run here, within walls of this machine or in containers, while the\n' +
    'attempts are rolled on another: repair:sandbox=URL and harbor:DIR,sandbox=URL. Limits are those\n' +
    'of this server; a workspace that nobody uses for an hour is ended.',
  examples: [
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
  positionalCount: [1, 1],
  run: runSandbox,
}

async function runSandbox(invocation: Invocation): Promise<number> {
  const { positionals: words, own, json, terminal, signal } = invocation
  if (words[0] !== 'serve') throw unknownVerb('sandbox', words[0], ['serve'])
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
