import type { WebSocket } from 'ws'
import {
  type Asked,
  type Fleet,
  type FleetMachine,
  serveVendor,
  type VendorServer,
} from './fleet.ts'

/** What the service says of a machine; from the types of the SDK. */
function described({ id, labels, state, lease }: FleetMachine, at: string) {
  return {
    id,
    name: id,
    organizationId: 'organization',
    user: 'root',
    env: {},
    labels,
    public: false,
    networkBlockAll: true,
    target: 'here',
    cpu: 1,
    gpu: 0,
    memory: 1,
    disk: 3,
    state: state === 'running' ? 'started' : 'paused',
    autoDestroyAt: new Date(lease * 60_000).toISOString(),
    toolboxProxyUrl: `${at}/toolbox`,
  }
}

const refusedWith = (status: number, message: string) => ({
  status,
  json: { statusCode: status, message },
})

/** A server that speaks Daytona's protocol: the API, and the toolbox within its machines. */
export async function serveDaytona(): Promise<VendorServer> {
  return await serveVendor(
    'daytona',
    async (asked, fleet) => {
      const { url, headers } = asked
      if (headers.authorization !== 'Bearer key') return refusedWith(401, 'Invalid credentials')
      const at = `http://${headers.host}`
      const [, first, id = '', ...rest] = url.pathname.split('/')
      if (id === '') return await answerAll(asked, fleet, at)
      const machine = fleet.machines.get(id)
      if (!machine) return refusedWith(404, `Sandbox with ID or name ${id} not found`)
      if (first === 'toolbox') return await answerInside(asked, fleet, { id, path: rest.join('/') })
      return await answerOne(asked, fleet, { machine, at, action: rest[0] })
    },
    follow,
  )
}

/** Sends what a command of a session prints, marked as its output, until it has ended. */
async function follow({ pathname }: URL, socket: WebSocket, fleet: Fleet): Promise<void> {
  const { output, finished } = fleet.talks[Number(pathname.split('/').at(-2))]!
  output.on('data', (part: Buffer) => socket.send(Buffer.concat([Buffer.from([1, 1, 1]), part])))
  await finished
  socket.close()
}

async function answerAll({ method, url, body }: Asked, fleet: Fleet, at: string) {
  if (method === 'GET') {
    const wanted: Record<string, string> = JSON.parse(url.searchParams.get('labels') ?? '{}')
    const found = [...fleet.machines.values()].filter(({ labels }) =>
      Object.entries(wanted).every(([name, value]) => labels[name] === value),
    )
    return {
      status: 200,
      json: { items: found.map(each => described(each, at)), nextCursor: null },
    }
  }
  const refused = fleet.refusals.shift()
  if (refused) return refusedWith(refused.status, refused.message)
  const { labels, ttlMinutes, networkBlockAll } = JSON.parse(body.toString())
  const made = await fleet.start({ labels, lease: ttlMinutes * 60, network: !networkBlockAll })
  return { status: 200, json: described(made, at) }
}

async function answerOne(
  { method, url, body }: Asked,
  fleet: Fleet,
  {
    machine,
    at,
    action,
  }: { readonly machine: FleetMachine; readonly at: string; readonly action: string | undefined },
) {
  if (method === 'DELETE') {
    await fleet.end(machine.id)
    return { status: 200, json: { ...described(machine, at), state: 'destroyed' } }
  }
  if (action === 'labels') machine.labels = JSON.parse(body.toString()).labels
  if (action === 'labels') return { status: 200, json: { labels: machine.labels } }
  if (action === 'ttl') machine.lease = Number(url.pathname.split('/').at(-1)) * 60
  if (action === 'pause') fleet.turn(machine.id, 'paused')
  if (action === 'start') fleet.turn(machine.id, 'running')
  if (action !== 'fork') return { status: 200, json: described(machine, at) }
  const refused = fleet.refusals.shift()
  if (refused) return refusedWith(refused.status, refused.message)
  const copy = await fleet.fork(machine.id, machine.lease)
  copy.labels = {}
  return { status: 200, json: described(copy, at) }
}

async function answerInside(
  { body, headers, gone }: Asked,
  fleet: Fleet,
  { id, path }: { readonly id: string; readonly path: string },
) {
  if (fleet.machines.get(id)?.state === 'paused') return refusedWith(400, 'sandbox is not started')
  if (path === 'process/execute') {
    const { output, code } = await fleet.shell(id, JSON.parse(body.toString()).command, gone)
    return { status: 200, json: { exitCode: code, result: output } }
  }
  if (path.startsWith('process/session')) return await answerSession(body, fleet, { id, path })
  if (!path.startsWith('files/')) return refusedWith(404, path)
  const boundary = /boundary=(.+)$/.exec(headers['content-type']!)![1]!
  const parts = body.toString('latin1').split(`--${boundary}`).slice(1, -1)
  const contents = parts.map(part => part.slice(part.indexOf('\r\n\r\n') + 4, -2))
  await fleet.write(id, contents[0]!, Buffer.from(contents[1]!, 'latin1'))
  return { status: 200 }
}

/** Commands that are talked to; each session has one. */
async function answerSession(
  body: Buffer,
  fleet: Fleet,
  { id, path }: { readonly id: string; readonly path: string },
) {
  const [, , , action, command, input] = path.split('/')
  const told = body.length > 0 ? JSON.parse(body.toString()) : {}
  if (action === 'exec') {
    fleet.talk(id, told.command)
    return { status: 202, json: { cmdId: String(fleet.talks.length - 1) } }
  }
  const talk = fleet.talks[Number(command)]
  if (input === 'input') talk?.input.write(told.data)
  if (!talk || input === 'input') return { status: 200, json: {} }
  const { code: exitCode } = await talk.finished
  return { status: 200, json: { id: command, command: '', exitCode } }
}
