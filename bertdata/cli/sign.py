"""``bertdata sign``: sign all files of a dataset, a run or an exported model."""

from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say
from bertdata.steps.sign import sign

EXAMPLE = """\
  bertdata sign shards --private-key key.pem
  bertdata sign bert-tiny --private-key key.pem --signature bert-tiny.sig"""

SUMMARY = """\
Writes a signature by OpenSSF Model Signing: a sigstore bundle with the name and the SHA-256 of every file of
the directory, signed with your private key. No network is used. Whoever has the public key can check that no
file was changed, added or removed: bertdata verify-md5 PATH --public-key FILE, or the command model_signing.
Files of git (.git, .gitattributes, .github, .gitignore) are not signed. A pair of keys, made by OpenSSL:
  openssl ecparam -name prime256v1 -genkey -noout -out key.pem
  openssl ec -in key.pem -pubout -out key.pub"""


def make_parser() -> Parser:
    """Return the parser of ``bertdata sign``."""
    parser = Parser("bertdata sign", EXAMPLE, SUMMARY)
    parser.add_argument("path", metavar="PATH", help="directory on this machine: a dataset, a run, a model")
    parser.add_argument(
        "--private-key",
        required=True,
        metavar="FILE",
        help="PEM file with a private key on the curve P-256, P-384 or P-521, without a password",
    )
    parser.add_argument(
        "--signature", metavar="FILE", help="file to write (default: model.sig in the directory)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing signature")
    return parser


def run(arguments: list[str]) -> int:
    """Write the signature, and print how to check it."""
    args = make_parser().parse_args(arguments)
    written = sign(args.path, args.private_key, signature=args.signature, overwrite=args.overwrite)
    beside = f" --signature {written}" if args.signature else ""
    say(f"wrote {written}; check it: bertdata verify-md5 {args.path} --public-key FILE{beside}")
    return 0
