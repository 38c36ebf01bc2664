import { request } from 'undici'
import { Door } from '../../src/doors/door/door.ts'
import { type Attack, hold, oneOf } from './attack.ts'

const own = ['localhost', '127.0.0.1:80', '[::1]:1']
const hosts = [...own, 'evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'a b']
const origins = [
  undefined,
  'http://localhost',
  'https://evil.example',
  'null',
  'http://127.0.0.1:80',
]
const types = [
  'application/json',
  'text/plain',
  'multipart/form-data; boundary=x',
  undefined,
  'a/b',
]
const tokens = ['Bearer secret-token', 'Bearer secret-toke', 'Bearer', 'Basic c2Vj', undefined]
const bodies = ['{}', '[1]', '{', '', `${'['.repeat(500)}`, '{"__proto__":1}', '"\\ud800"', 'a=b']
const paths = ['/change', '/tell', '/change?a=1&a=2', '/%00', '/../change', '/nowhere', '//change']

/** Requests of every kind on a door: nothing changes but for those that may change it. */
export const doors: Attack = {
  name: 'HTTP requests',
  promise: 'H2',
  share: 30,
  async open() {
    const door = new Door({ host: '127.0.0.1', token: 'secret-token', bodyBytes: 4096 })
    let changes = 0
    door.post('/change', async request => ({ body: await request.json(), changes: ++changes }))
    door.get('/tell', () => ({ changes }))
    const base = await door.listen(0)
    door.server.unref()
    return async draw => {
      const given = {
        host: oneOf(hosts, draw),
        origin: oneOf(origins, draw),
        type: oneOf(types, draw),
        token: oneOf(tokens, draw),
      }
      const body = oneOf(bodies, draw)
      const headers = {
        host: given.host,
        ...(given.origin !== undefined && { origin: given.origin }),
        ...(given.type !== undefined && { 'content-type': given.type }),
        ...(given.token !== undefined && { authorization: given.token }),
      }
      const method = oneOf(['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'] as const, draw)
      const url = oneOf(paths, draw)
      const before = changes
      const answer = await request(`${base}${url}`, { method, headers, body })
      await answer.body.dump()
      const told = `${method} ${url} ${JSON.stringify(headers)} ${JSON.stringify(body)}`
      hold(answer.statusCode < 500, `${told} was answered ${answer.statusCode}`)
      if (changes === before) return
      const isOwn = own.includes(given.host)
      const isSame = given.origin === undefined || given.origin === `http://${given.host}`
      const mayChange = given.type === 'application/json' && given.token === tokens[0]
      hold(isOwn && isSame && mayChange, `${told} changed something`)
    }
  },
}
