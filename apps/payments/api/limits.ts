/** What one request may ask of us. A payment needs a small part of each. */
export const API_LIMITS = {
  bodySizeMaxBytes: 65_536,
  /** What the processor tells at once; an intent with all that is expanded in it stays far below. */
  gatewayWebhookMaxBytes: 1_048_576,
  /** All of it, as JSON: room for twenty texts of 500 ASCII characters and their names. */
  metadataMaxBytes: 12_288,
  jsonDepthMax: 16,
  jsonMembersMax: 1_000,
  /** Keys, of which each character may be written as three. */
  pathParameterLengthMax: 765,
  /** How often text is read as percent-encoded when card numbers are looked for: an address inside of an address in a third one. */
  percentDecodedTimesMax: 3,
  /** How much of a name that the client sent is repeated to it. */
  nameShownLengthMax: 100,
  /** Waiting for the head and the body of a request: a client that trickles them keeps no connection for ever. */
  requestTimeoutMs: 30_000,
  /** How long /readyz waits for the database, and how long its answer is told again without asking. */
  readyMaxMs: 2_000,
  readyKeptMs: 1_000,
  /** Addresses whose tries without a credential are counted; the one that was used least lately is forgotten. */
  strangerAddressesMax: 10_000,
  pageDefault: 20,
  pageMax: 100,
  cursorLengthMax: 400,
} as const
