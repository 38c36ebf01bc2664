import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { plainTree } from '../../../../test/plain-tree.ts'
import { openReceiver } from '../../../../test/receiver.ts'
import {
  keepSecret,
  keepSecretVariables,
  withoutLikelySecrets,
} from '../../../base/core/process/secrets.ts'
import { type Channel, makeChannel } from './channels.ts'
import { fingerprintOf, type Notice, noticeOfError } from './notice.ts'
import { makeNotifier } from './notifier.ts'

const notice: Notice = {
  level: 'failure',
  title: 'it failed',
  text: 'somewhere',
  fingerprint: 'abc',
  run: '0001',
  time: '2026-01-02T03:04:05.000Z',
  count: 1,
}
const never = new AbortController().signal
const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-notify-'))

/** A channel that keeps what it is sent. */
function keeping(): Channel & { readonly sent: Notice[] } {
  const sent: Notice[] = []
  const on = ['failure', 'warning', 'end'] as const
  return { name: 'keeping', on, secrets: [], sent, send: async each => void sent.push(each) }
}

describe('channels', () => {
  it('post the notice as JSON, with the secret as a bearer token', async () => {
    await using receiver = await openReceiver()
    const variables = { URL: receiver.url, SECRET: 'SECdead' }
    const settings = { kind: 'webhook', urlVariable: 'URL', secretVariable: 'SECRET' } as const
    const channel = await makeChannel(settings, variables)
    await channel.send(notice, never)
    expect(receiver.received[0]!.body).toEqual({ source: 'espalier', ...notice })
    expect(receiver.received[0]!.headers.authorization).toBe('Bearer SECdead')
    expect(channel.secrets).toEqual([receiver.url, 'SECdead'])
  })

  it('know a refusal, and a missing secret by its name', async () => {
    await using receiver = await openReceiver(() => [403, 'no'])
    const channel = await makeChannel({ kind: 'webhook', url: receiver.url }, {})
    await expect(channel.send(notice, never)).rejects.toThrow('it answered 403')
    await expect(makeChannel({ kind: 'webhook', urlVariable: 'NOPE' }, {})).rejects.toThrow(
      'notify: webhook: the variable NOPE of its url is not set',
    )
    await expect(makeChannel({ kind: 'webhook' }, {})).rejects.toThrow('urlFile or urlVariable')
  })

  it('can be a program that reads the notice', async () => {
    const file = join(scratch(), 'notice.json')
    const channel = await makeChannel({ kind: 'command', command: ['tee', file] }, {})
    await channel.send(notice, never)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(notice)
    const wrong = await makeChannel({ kind: 'command', command: ['false'] }, {})
    await expect(wrong.send(notice, never)).rejects.toThrow('it ended with 1')
  })

  it('read addresses from files', async () => {
    await using receiver = await openReceiver()
    const urlFile = join(scratch(), 'url')
    writeFileSync(urlFile, `${receiver.url}/hook\n`)
    expect(existsSync(urlFile)).toBe(true)
    const channel = await makeChannel({ kind: 'webhook', urlFile }, {})
    await channel.send(notice, never)
    expect(receiver.received[0]!.path).toBe('/hook')
    expect(channel.secrets).toEqual([`${receiver.url}/hook`])
  })
})

describe('redaction', () => {
  keepSecretVariables({ MY_API_KEY: 'hunter2hunter2', HOME: '/home/somebody' })
  keepSecret('https://x/tok')
  const redact = withoutLikelySecrets

  it('[H4] takes out what is secret and leaves the rest', () => {
    for (const secret of [
      'hunter2hunter2',
      'https://x/tok',
      'Authorization: Bearer abcdefghijkl',
      'sk-abcdefghijklmnopqrst',
      'postgres://user:pass@host/db',
      '{"api_key": "abcdefgh"}',
      'GET /x?access_token=abcdefgh',
    ]) {
      expect(redact(`before ${secret} after`)).toMatch(/^before .*\[redacted\].* after$/)
    }
    const plain = 'task calculator/train/7 failed at /home/somebody/file.ts:12 with key error'
    expect(redact(plain)).toBe(plain)
  })

  it('takes a moment over hostile text, where more than linear time would take hours', () => {
    for (const piece of ['key', 'sk-', '://a:', 'bearer ', 'token=']) {
      const text = piece.repeat(50_000)
      expect(redact(text).length).toBeLessThanOrEqual(text.length + 100)
    }
  })
})

describe('a notifier', () => {
  it('tells a problem once, then how often it came again', async () => {
    let now = 0
    const channel = keeping()
    const redact = withoutLikelySecrets
    const notifier = makeNotifier({
      run: '7',
      channels: [channel],
      redact,
      every: 60,
      clock: () => now,
    })
    for (let time = 0; time < 50; time++) {
      notifier.notify(noticeOfError(new Error(`no answer from port ${time}`), 'sampling'))
    }
    expect(channel.sent.map(({ title, count }) => [title, count])).toEqual([
      ['espalier 7: sampling failed: no answer from port 0', 1],
    ])
    now = 61_000
    notifier.notify(noticeOfError(new Error('no answer from port 99'), 'sampling'))
    expect(channel.sent.at(-1)).toMatchObject({
      count: 50,
      title: expect.stringContaining('(50 times more)'),
    })
    notifier.notify(noticeOfError(new TypeError('something else'), 'sampling'))
    expect(channel.sent).toHaveLength(3)
    await notifier[Symbol.asyncDispose]()
    expect(notifier.counts.held).toBe(49)
  })

  it('is bounded: in notices per hour, and in their size', async () => {
    const channel = keeping()
    const redact = withoutLikelySecrets
    const notifier = makeNotifier({
      run: '7',
      channels: [channel],
      redact,
      perHour: 5,
      clock: () => 0,
    })
    for (const letter of 'abcdefghijklmnop') {
      const title = 'x'.repeat(500)
      notifier.notify({ level: 'failure', title, text: 'y'.repeat(50_000), fingerprint: letter })
    }
    expect(channel.sent).toHaveLength(5)
    expect(channel.sent[0]!.title.length).toBeLessThanOrEqual(200)
    expect(channel.sent[0]!.text.length).toBeLessThan(4100)
    await notifier[Symbol.asyncDispose]()
  })

  it('never holds anything up, and says once that a channel cannot be reached', async () => {
    await using receiver = await openReceiver(() => undefined)
    const told: string[] = []
    let hear = () => {}
    const heard = new Promise<void>(resolve => {
      hear = resolve
    })
    const hanging = await makeChannel({ kind: 'webhook', url: receiver.url }, {})
    const gone = await makeChannel({ kind: 'webhook', url: 'http://127.0.0.1:9/x' }, {})
    const redact = withoutLikelySecrets
    const channels = [hanging, gone]
    const tell = (line: string) => {
      told.push(line)
      hear()
    }
    const notifier = makeNotifier({ run: '7', channels, redact, tell, patience: 0.1 })
    for (const letter of 'abcd') {
      notifier.notify({ level: 'failure', title: letter, text: '', fingerprint: letter })
    }
    expect([told, notifier.counts]).toEqual([[], { sent: 0, held: 0, failed: 0 }])
    await heard
    await notifier[Symbol.asyncDispose]()
    expect(told).toHaveLength(1)
    expect(told[0]).toContain('notify: webhook could not be told')
    // Its patience is a tenth of a second; the channel that hangs would be given up after ten.
  }, 8000)

  it('hears failures, warnings and the end of a run', async () => {
    const channel = keeping()
    const notifier = makeNotifier({ run: '7', channels: [channel], redact: withoutLikelySecrets })
    const outcome = (port: number) =>
      ({ kind: 'failed', boundary: 'policy', message: `port ${port} is closed` }) as const
    for (let port = 0; port < 5; port++) {
      notifier.listen({ kind: 'tree-end', tree: plainTree({ outcome: outcome(port) }) })
    }
    notifier.listen({ kind: 'warning', sentinel: 'equal-rewards', message: 'all 0', likely: 'x' })
    notifier.listen({ kind: 'run-end', status: 'failed', error: new Error('disk full') })
    await notifier[Symbol.asyncDispose]()
    expect(channel.sent.map(({ level, title }) => [level, title])).toEqual([
      ['failure', 'espalier 7: an attempt failed in policy'],
      ['warning', 'espalier 7: equal-rewards'],
      ['failure', 'espalier 7: the run failed: disk full'],
      ['failure', 'espalier 7: an attempt failed in policy (4 times more)'],
    ])
  })
})

it('fingerprints do not depend on numbers and ids', () => {
  expect(fingerprintOf('port 8080 at 0xdeadbeef')).toBe(fingerprintOf('port 81 at 0x12'))
  expect(fingerprintOf('a', 'b')).not.toBe(fingerprintOf('ab'))
})
