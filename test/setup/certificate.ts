import { generateKeyPairSync, sign } from 'node:crypto'

export interface Certificate {
  readonly cert: string
  readonly key: string
}

/**
 * A self-signed certificate for a name and an address, with any validity: tools for the command line make none that has expired.
 *
 * @example
 * const { cert, key } = certificateFor({ name: 'localhost', address: '127.0.0.1', from: yesterday, until: tomorrow })
 */
export function certificateFor(given: {
  readonly name: string
  readonly address: string | null
  readonly from: Date
  readonly until: Date
}): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const subject = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(given.name)))))
  const names = [der(0x82, Buffer.from(given.name))]
  if (given.address !== null) names.push(der(0x87, Buffer.from(given.address.split('.').map(Number))))
  const extensions = sequence(
    sequence(SUBJECT_ALT_NAME, der(0x04, sequence(...names))),
    sequence(BASIC_CONSTRAINTS, der(0x04, sequence(der(0x01, Buffer.of(0xff))))),
  )
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    sequence(ECDSA_SHA256),
    subject,
    sequence(time(given.from), time(given.until)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  )
  const signature = der(0x03, Buffer.of(0), sign('sha256', body, privateKey))
  const text = sequence(body, sequence(ECDSA_SHA256), signature).toString('base64')
  const cert = `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

const COMMON_NAME = oid(0x55, 0x04, 0x03)
const SUBJECT_ALT_NAME = oid(0x55, 0x1d, 0x11)
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13)
const ECDSA_SHA256 = oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02)

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes))
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts)
}

/** GeneralizedTime: 20261115230000Z. */
function time(at: Date): Buffer {
  return der(0x18, Buffer.from(`${at.toISOString().replace(/\.\d+Z$|[-:T]/g, '')}Z`))
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...size), content])
}
