import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { connectionOf, readAddress, shownAddress } from './address.ts'

const urlOf = (text: string): URL => {
  const address = readAddress(text)
  if (address.kind !== 'postgres') throw new Error('a database was named')
  return address.url
}

describe('the address of a cluster', () => {
  it('is a database or so many workers here', () => {
    expect(readAddress('local:4')).toEqual({ kind: 'local', workers: 4 })
    expect(() => readAddress('local:0')).toThrow('local:N starts 1 to 256 workers here')
    expect(() => readAddress('mysql://db')).toThrow('neither postgres://USER@HOST:PORT/DATABASE')
  })

  it("takes user and password from PostgreSQL's variables where it names none", () => {
    const variables = { PGUSER: 'someone', PGPASSWORD: 'pears-and-plums-1' }
    expect(connectionOf(urlOf('postgres://db.internal/runs'), variables)).toMatchObject({
      host: 'db.internal',
      port: 5432,
      database: 'runs',
      user: 'someone',
      password: 'pears-and-plums-1',
      ssl: false,
    })
    const own = connectionOf(urlOf('postgres://me:apples-and-figs@[::1]:6543/runs'), variables)
    expect(own).toMatchObject({ host: '::1', port: 6543, user: 'me', password: 'apples-and-figs' })
  })

  it('is shown without its password, which nothing that is printed holds', () => {
    const url = urlOf('postgres://me:quinces%20and%20medlars@db/runs?sslmode=require')
    expect(shownAddress(url)).toBe('postgres://db/runs')
    connectionOf(url, { PGPASSWORD: 'from-the-variable' })
    const printed = 'me quinces and medlars quinces%20and%20medlars from-the-variable'
    expect(withoutSecrets(printed)).not.toMatch(/quinces|from-the-variable/)
  })

  it('refuses an address whose password was not kept', () => {
    expect(() => readAddress('postgres://me:[redacted]@db/runs')).toThrow('set PGPASSWORD')
  })

  it('encrypts and checks as PGSSLMODE says', () => {
    const root = join(mkdtempSync(join(tmpdir(), 'espalier-test-')), 'ca.pem')
    writeFileSync(root, 'a certificate')
    const url = urlOf('postgres://me@db/runs')
    const encryption = (variables: Record<string, string>) => connectionOf(url, variables).ssl
    const unnamed = expect.any(Function)
    expect(encryption({ PGSSLMODE: 'require' })).toEqual({ rejectUnauthorized: false })
    expect(encryption({ PGSSLMODE: 'require', PGSSLROOTCERT: root })).toEqual({
      ca: 'a certificate',
      rejectUnauthorized: true,
      checkServerIdentity: unnamed,
    })
    expect(encryption({ PGSSLMODE: 'verify-ca' })).toEqual({
      rejectUnauthorized: true,
      checkServerIdentity: unnamed,
    })
    expect(encryption({ PGSSLMODE: 'verify-full', PGSSLROOTCERT: root })).toEqual({
      ca: 'a certificate',
      rejectUnauthorized: true,
    })
    expect(connectionOf(urlOf('postgres://me@db/runs?sslmode=verify-full'), {}).ssl).toEqual({
      rejectUnauthorized: true,
    })
    expect(() => encryption({ PGSSLMODE: 'prefer' })).toThrow('"prefer" is not one of disable')
    expect(() => encryption({ PGSSLMODE: 'require', PGSSLROOTCERT: '/no/such' })).toThrow(
      'PGSSLROOTCERT: /no/such cannot be read',
    )
  })
})
