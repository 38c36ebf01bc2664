/**
 * The program that runs beside a harness, in its sandbox. It starts processes and takes connections for whoever
 * talks to it on its standard streams, a JSON object per line, so that a sandbox needs no network. When its input
 * ends, so does everything it started.
 */
export const relayProgram = `
const net = require('node:net'), { spawn } = require('node:child_process')
const say = message => process.stdout.write(JSON.stringify(message) + '\\n')
const children = new Map(), sockets = new Map()
let made = 0
const server = net.createServer({ allowHalfOpen: true }, socket => {
  const id = made++
  sockets.set(id, socket)
  say({ kind: 'connected', id })
  socket.on('data', data => say({ kind: 'data', id, bytes: data.toString('base64') }))
  socket.on('end', () => say({ kind: 'ended', id }))
  socket.on('error', () => {})
  socket.on('close', () => { sockets.delete(id); say({ kind: 'closed', id }) })
})
const end = child => { try { process.kill(-child.pid, 'SIGKILL') } catch {} }
const acts = {
  start({ id, words, folder, variables }) {
    let child
    try {
      child = spawn(words[0], words.slice(1), { cwd: folder, env: { ...process.env, ...variables }, detached: true })
    } catch (error) { return say({ kind: 'exited', id, code: 127, problem: error.message }) }
    children.set(id, child)
    const over = (code, problem) => { if (children.delete(id)) say({ kind: 'exited', id, code, problem }) }
    child.stdout.on('data', data => say({ kind: 'printed', id, bytes: data.toString('base64') }))
    child.stderr.on('data', data => say({ kind: 'complained', id, bytes: data.toString('base64') }))
    child.stdin.on('error', () => {})
    child.on('error', error => over(127, error.message))
    child.on('exit', (code, signal) => {
      end(child)
      const status = code ?? (signal === 'SIGKILL' ? 137 : 143)
      child.on('close', () => over(status))
      // What left its group may hold its pipes open.
      setTimeout(() => over(status), 1000)
    })
  },
  write({ id, bytes }) { children.get(id)?.stdin.write(Buffer.from(bytes, 'base64')) },
  finish({ id }) { children.get(id)?.stdin.end() },
  kill({ id }) { const child = children.get(id); if (child) end(child) },
  send({ id, bytes }) { sockets.get(id)?.write(Buffer.from(bytes, 'base64')) },
  close({ id }) { sockets.get(id)?.end() },
}
let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', text => {
  const lines = (rest + text).split('\\n')
  rest = lines.pop()
  for (const line of lines) { const message = JSON.parse(line); acts[message.kind]?.(message) }
})
process.stdin.on('end', () => { for (const child of children.values()) end(child); process.exit(0) })
server.listen(0, '127.0.0.1', () => say({ kind: 'listening', port: server.address().port }))
`
