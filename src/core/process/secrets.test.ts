import { expect, it } from 'vitest'
import { keepSecretsIn, withoutSecrets } from './secrets.ts'

it('H4: a secret in an address is known as it is written and as it is sent', () => {
  keepSecretsIn({
    at: [
      'postgres://me:p%40ssword-of-mine@host/db?sslpassword=of-the-certificate',
      'https://host/hook?x-api-key=key-of-the-hook&page=12345678',
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
  expect(withoutSecrets('page 12345678')).toBe('page 12345678')
})
