import { gunzipSync } from 'node:zlib'
import {
  type Asked,
  type Fleet,
  type FleetMachine,
  serveVendor,
  type VendorServer,
} from './fleet.ts'

/** What the service says of a machine; from the types of the SDK. */
function described({ id }: FleetMachine) {
  return {
    sandboxID: id,
    templateID: 'base',
    clientID: 'client',
    envdVersion: '0.5.8',
    envdAccessToken: `token-${id}`,
  }
}

function listed(machine: FleetMachine) {
  const { labels, state, lease } = machine
  const startedAt = new Date(0).toISOString()
  const endAt = new Date(lease * 1000).toISOString()
  const size = { cpuCount: 2, memoryMB: 512, diskSizeMB: 1024 }
  return { ...described(machine), metadata: labels, state, startedAt, endAt, ...size }
}

const none = { status: 404, json: { code: 404, message: 'sandbox not found' } }

/** A server that speaks E2B's protocol: the API, and the agent within its machines. */
export function serveE2b({ knowsForks = true } = {}): Promise<VendorServer> {
  const snapshots = new Map<string, string>()
  return serveVendor('e2b', async (asked, fleet) => {
    const { url, headers } = asked
    const inside = headers['e2b-sandbox-id']
    if (typeof inside === 'string') return await answerInside(asked, fleet, inside)
    if (headers['x-api-key'] !== 'key')
      return { status: 401, json: { code: 401, message: 'Invalid API key' } }
    const [, , id = '', action] = url.pathname.replace(/^\/v2/, '').split('/')
    if (id === '') return await answerAll(asked, fleet, snapshots)
    if (url.pathname.startsWith('/templates/')) {
      await fleet.end(snapshots.get(id)!)
      snapshots.delete(id)
      return { status: 204 }
    }
    const machine = fleet.machines.get(id)
    if (!machine) return none
    if (action === 'fork' && !knowsForks) return { status: 404, json: { message: 'no such route' } }
    if (action === 'snapshots') {
      const snapshot = await fleet.fork(id, machine.lease)
      snapshots.set(snapshot.id, snapshot.id)
      return { status: 201, json: { snapshotID: snapshot.id, names: [] } }
    }
    return await answerOne(asked, fleet, { machine, action })
  })
}

/** Machines are started and listed. */
async function answerAll(
  { method, url, body }: Asked,
  fleet: Fleet,
  snapshots: Map<string, string>,
) {
  if (method === 'GET') {
    const wanted = new URLSearchParams(url.searchParams.get('metadata') ?? '')
    const pairs = [...wanted].map(([name, value]) => [
      decodeURIComponent(name),
      decodeURIComponent(value),
    ])
    const found = [...fleet.machines.values()].filter(
      ({ id, labels }) =>
        !snapshots.has(id) && pairs.every(([name, value]) => labels[name!] === value),
    )
    return { status: 200, json: found.map(listed) }
  }
  const refused = fleet.refusals.shift()
  if (refused)
    return { status: refused.status, json: { code: refused.status, message: refused.message } }
  const { templateID, metadata, timeout, allow_internet_access } = JSON.parse(body.toString())
  const from = { labels: metadata ?? {}, lease: timeout, network: allow_internet_access }
  if (!snapshots.has(templateID)) return { status: 201, json: described(await fleet.start(from)) }
  const copy = await fleet.fork(templateID, timeout)
  copy.labels = metadata
  return { status: 201, json: described(copy) }
}

async function answerOne(
  { method, body }: Asked,
  fleet: Fleet,
  { machine, action }: { readonly machine: FleetMachine; readonly action: string | undefined },
) {
  if (method === 'DELETE') {
    await fleet.end(machine.id)
    return { status: 204 }
  }
  if (action === 'pause') fleet.turn(machine.id, 'paused')
  if (action === 'pause') return { status: 204 }
  if (action === 'connect') fleet.turn(machine.id, 'running')
  if (action !== 'fork') return { status: 200, json: listed(machine) }
  const refused = fleet.refusals.shift()
  if (refused)
    return { status: 201, json: [{ error: { code: refused.status, message: refused.message } }] }
  const copy = await fleet.fork(machine.id, JSON.parse(body.toString()).timeout)
  return { status: 201, json: [{ sandbox: described(copy) }] }
}

/** The agent within a machine: files over HTTP, processes over Connect's streams. */
async function answerInside(
  { url, headers, body, gone, response }: Asked,
  fleet: Fleet,
  id: string,
) {
  const machine = fleet.machines.get(id)
  if (!machine) return { status: 502, json: { message: 'The sandbox was not found', code: 502 } }
  if (headers['x-access-token'] !== `token-${id}` && !fleet.machines.has(id)) return none
  if (machine.state === 'paused') return { status: 502, json: { message: 'paused', code: 502 } }
  if (url.pathname === '/files') {
    const path = url.searchParams.get('path')!
    const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
    await fleet.write(id, path, fileOf(bytes, headers['content-type']))
    return { status: 200, json: [{ name: path.split('/').at(-1), path, type: 'file' }] }
  }
  const told = url.pathname === '/process.Process/Start' ? undefined : JSON.parse(body.toString())
  const talk = fleet.talks[(told?.process?.pid ?? 0) - 1]
  if (url.pathname === '/process.Process/SendInput')
    talk?.input.write(Buffer.from(told.input.stdin, 'base64'))
  if (url.pathname === '/process.Process/CloseStdin') talk?.input.end()
  if (talk) return { status: 200, json: {} }
  if (url.pathname !== '/process.Process/Start')
    return { status: 404, json: { message: url.pathname } }
  response.writeHead(200, { 'content-type': 'application/connect+json' })
  const send = (message: object, flags = 0): void => {
    const text = Buffer.from(JSON.stringify(message))
    const head = Buffer.alloc(5)
    head.writeUInt8(flags, 0)
    head.writeUInt32BE(text.length, 1)
    response.write(Buffer.concat([head, text]))
  }
  const { process, stdin } = JSON.parse(body.subarray(5).toString())
  const print = (bytes: Buffer): void =>
    send({ event: { data: { stdout: bytes.toString('base64') } } })
  const line: string = process.args.at(-1)
  const talked = stdin ? fleet.talk(id, line, gone) : undefined
  talked?.output.on('data', print)
  send({ event: { start: { pid: fleet.talks.length } } })
  const { output, code } = await (talked?.finished ?? fleet.shell(id, line, gone))
  if (!talked) print(Buffer.from(output))
  send({ event: { end: { exitCode: code, exited: true, status: `exit status ${code}` } } })
  send({}, 2)
  response.end()
  return undefined
}

/** The one file of a form, or the body as it is. */
function fileOf(body: Buffer, type = ''): Buffer {
  if (!type.startsWith('multipart/')) return body
  const start = body.indexOf('\r\n\r\n') + 4
  const end = body.lastIndexOf(`\r\n--${/boundary=(.+)$/.exec(type)![1]}`)
  return body.subarray(start, end)
}
