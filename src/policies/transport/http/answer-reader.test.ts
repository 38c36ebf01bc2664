import { describe, expect, it } from 'vitest'
import { AnswerReader } from './answer-reader.ts'

/** Reads one answer in pieces of a size; `close` ends the connection behind it. */
function read(answer: string, size: number, close = false) {
  const seen = { status: 0, headers: {} as Readonly<Record<string, string>>, body: '' }
  const reader = new AnswerReader({
    onHead(status, headers) {
      seen.status = status
      seen.headers = { ...headers }
    },
    onData(chunk) {
      seen.body += chunk.toString('latin1')
    },
  })
  reader.begin()
  const bytes = Buffer.from(answer, 'latin1')
  for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size))
  if (close) reader.end()
  return { ...seen, isOver: reader.isOver, staysOpen: reader.staysOpen }
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const answers = {
  'a length': 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world',
  chunks: `${chunked}5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nChecksum: 1\r\n\r\n`,
  'words before it':
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200\r\ncontent-length:11\r\n\r\nhello world',
}

describe('answers over HTTP', () => {
  it.each(Object.entries(answers))('with %s are the same however they are cut', (_, answer) => {
    for (let size = 1; size <= answer.length; size++) {
      const { status, body, isOver, staysOpen } = read(answer, size)
      expect({ status, body, isOver, staysOpen }).toEqual({
        status: 200,
        body: 'hello world',
        isOver: true,
        staysOpen: true,
      })
    }
  })

  it('end with their connection where they say no length', () => {
    const answer = 'HTTP/1.0 200 OK\r\n\r\nhello'
    expect(read(answer, 3)).toMatchObject({ isOver: false, staysOpen: false })
    expect(read(answer, 3, true)).toMatchObject({ isOver: true, body: 'hello' })
    expect(read('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell', 9, true).isOver).toBe(false)
  })

  it('without a body are over with their head', () => {
    for (const head of ['204 No Content', '304 Not Modified', '429 Busy\r\ncontent-length: 0']) {
      expect(read(`HTTP/1.1 ${head}\r\n\r\n`, 4).isOver).toBe(true)
    }
  })

  it('tell their headers by small names, joined where they came twice', () => {
    const { headers, staysOpen } = read(
      'HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:  2 \r\nConnection: Close\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n',
      7,
    )
    expect(headers).toEqual({ 'x-a': '1, 2', connection: 'Close', 'content-length': '0' })
    expect(staysOpen).toBe(false)
  })

  it.each([
    ['SSH-2.0-server\r\n\r\n', 'it begins with "SSH-2.0-server"'],
    ['HTTP/1.1 200 OK\r\nno header\r\n\r\n', 'a header reads "no header"'],
    ['HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n', 'its content-length is "-1"'],
    ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 'is "1, 2"'],
    [`${chunked}xyz\r\n`, 'a chunk begins with "xyz"'],
    [`${chunked}2\r\nabc\r\n`, 'a chunk is longer than it says'],
    ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc', 'bytes came that belong to no answer'],
    [`HTTP/1.1 200 OK\r\na: ${'b'.repeat(70_000)}`, 'longer than 65536 bytes'],
  ])('that are none are refused: %#', (answer, problem) => {
    expect(() => read(answer, answer.length)).toThrow(problem)
    expect(() => read(answer, 1000)).toThrow(problem)
  })
})
