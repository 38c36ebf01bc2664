import { expect, it } from 'vitest'
import { keepSecret } from '../base/core/process/secrets.ts'
import { makeTerminal, type Streams } from './terminal.ts'

function keeping(
  isTTY: boolean,
  env: Streams['env'] = {},
): { streams: Streams; written: () => string } {
  let text = ''
  const write = (part: string): boolean => {
    text += part
    return true
  }
  const stream = { isTTY, columns: 80, write }
  const streams = { stdout: stream, stderr: stream, env } as unknown as Streams
  return { streams, written: () => text }
}

it('H8: control characters in what is printed are shown, and only our own colours are colours', () => {
  const { streams, written } = keeping(true)
  const terminal = makeTerminal(streams)
  terminal.print(
    `${terminal.paint('red', 'said')} \x1b[31mred \x1b]0;title\x07 \r\x1b[2K \u202e x\ty`,
  )
  terminal.tell('\x9b2J and \x7f')
  expect(written()).toBe(
    '\x1b[31msaid\x1b[0m ␛[31mred ␛]0;title␇ ␍␛[2K \\u202e x\ty\n\\u009b2J and \\u007f\n',
  )
})

it('H8: without a terminal nothing is coloured', () => {
  const { streams, written } = keeping(false)
  const terminal = makeTerminal(streams)
  terminal.print(terminal.paint('bold', 'plain'))
  expect(written()).toBe('plain\n')
})

it.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }])('nothing is coloured with %o', env => {
  const { streams, written } = keeping(true, env)
  const terminal = makeTerminal(streams)
  terminal.print(terminal.paint('bold', 'plain'))
  expect(written()).toBe('plain\n')
})

it('H4: a secret is printed only in the line that is there to tell it', () => {
  const { streams, written } = keeping(false)
  keepSecret('made-for-this-page')
  keepSecret('somebody-elses')
  const terminal = makeTerminal(streams)
  terminal.print('made-for-this-page')
  terminal.print('?token=made-for-this-page somebody-elses', 'made-for-this-page')
  expect(written()).toBe('[redacted]\n?token=made-for-this-page [redacted]\n')
})
