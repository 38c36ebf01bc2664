import { expect, it } from 'vitest'
import {
  jsonWithoutSecrets,
  keepSecret,
  keepSecretsIn,
  withoutSecrets,
  withoutSecretsInJson,
} from './secrets.ts'

it('H4: a secret in an address is known as it is written and as it is sent', () => {
  keepSecretsIn({
    at: [
      'postgres://me:p%40ssword-of-mine@host/db?sslpassword=of-the-certificate',
      'https://host/hook?x-api-key=key-of-the-hook&page=52093817',
    ],
  })
  for (const said of [
    'p%40ssword-of-mine',
    'p@ssword-of-mine',
    'of-the-certificate',
    'key-of-the-hook',
  ]) {
    expect(withoutSecrets(`it was ${said}.`)).toBe('it was [redacted].')
  }
  expect(withoutSecrets('page 52093817')).toBe('page 52093817')
})

it('H4: JSON stays JSON where a number has the digits of a secret, or an escape is its first letter', () => {
  keepSecret('87654321')
  keepSecret('nectarine')
  const said = { logprob: -0.87654321, text: '\nectarine 87654321', nectarine: [true, null] }
  expect(JSON.parse(jsonWithoutSecrets(said))).toEqual({
    logprob: -0.87654321,
    text: '\nectarine [redacted]',
    '[redacted]': [true, null],
  })
  expect(JSON.parse(jsonWithoutSecrets({ text: 'of nectarine' }, 2))).toEqual({
    text: 'of [redacted]',
  })
})

it('H4: a secret is hidden in JSON that is a text of JSON', () => {
  keepSecret('quinces-"of"-mine')
  const call = { arguments: JSON.stringify({ it: 'quinces-"of"-mine' }) }
  expect(JSON.parse(jsonWithoutSecrets(call))).toEqual({ arguments: '{"it":"[redacted]"}' })
})

it('H4: written JSON, its lines and events stay JSON; what is none is hidden as text', () => {
  keepSecret('87654321')
  keepSecret('nectarine')
  const said = { logprob: -0.87654321, id: 87654321, text: '\nectarine, 87654321' }
  const shown = { ...said, text: '\nectarine, [redacted]' }
  const [plain, hidden] = [JSON.stringify(said), JSON.stringify(shown)]
  expect(withoutSecretsInJson(JSON.stringify(said, null, 2))).toBe(JSON.stringify(shown, null, 2))
  expect(withoutSecretsInJson(`${plain}\n${plain}\n`)).toBe(`${hidden}\n${hidden}\n`)
  expect(withoutSecretsInJson(`event: a\ndata: ${plain}\n\n`)).toBe(`event: a\ndata: ${hidden}\n\n`)
  for (const text of ['87654321', 'data: 87654321', '[it is 87654321]', '{"half": 87654321']) {
    expect(withoutSecretsInJson(text)).not.toContain('87654321')
  }
})

it('H4: a secret is hidden in base64 and in hexadecimal digits, wherever it begins in them', () => {
  const secret = 'sk-Encoded?Secret>47'
  keepSecret(secret)
  for (const before of ['', 'a', 'ab', 'user:', 'Bearer ']) {
    for (const kind of ['base64', 'base64url', 'hex'] as const) {
      const echoed = Buffer.from(`${before}${secret}, and more`).toString(kind)
      const shown = withoutSecrets(`the key was ${echoed}`)
      expect(shown).toContain('[redacted]')
      expect(Buffer.from(shown.slice(12), kind).toString()).not.toContain('Secret')
    }
  }
})
