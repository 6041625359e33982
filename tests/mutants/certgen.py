"""Mutants of the content of certgen's Secret."""

from tests.mutants.mutant import Source

SOURCES = (
    Source(
        "certgen/plan.py",
        ("tests/unit/certgen/test_plan.py",),
        (
            ("(*contents.retired, *lost)", "lost"),
            ("        reasons.append(Reason.AUTHORITY_RECOVERED)\n", ""),
            ("    if len(alive.trusted) < len(contents.trusted):\n", "    if False:\n"),
            ("        contents = alive\n", "        pass\n"),
            (
                "newest.not_valid_after_utc - now <= lifetimes.authority / 3",
                "newest.not_valid_after_utc - now < lifetimes.authority / 3",
            ),
            (
                "newest.not_valid_after_utc - now <= lifetimes.authority / 3",
                "newest.not_valid_after_utc - now <= lifetimes.authority / 2",
            ),
            ("newest.not_valid_after_utc - now <= lifetimes.authority / 3", "False"),
            ("contents.authorities[0].certificate if", "contents.authorities[-1].certificate if"),
            ("Reason.AUTHORITY_DUE if newest else Reason.NO_AUTHORITY", "Reason.AUTHORITY_DUE"),
            ("contents.leaf.hosts if contents.leaf and reason is Reason.HOSTS_MISSING else ()", "()"),
            (
                "contents.leaf.hosts if contents.leaf and reason is Reason.HOSTS_MISSING else ()",
                "contents.leaf.hosts if contents.leaf else ()",
            ),
            ("[*dict.fromkeys([*hosts, *sorted(kept)])]", "[*dict.fromkeys([*sorted(kept), *hosts])]"),
            ("[*dict.fromkeys([*hosts, *sorted(kept)])]", "[*hosts, *sorted(kept)]"),
            ("if len(contents.trusted) >= _MAX_TRUSTED:", "if len(contents.trusted) > _MAX_TRUSTED:"),
            ("if len(contents.trusted) >= _MAX_TRUSTED:", "if len(contents.authorities) >= _MAX_TRUSTED:"),
            ("first = min(", "first = max("),
            ("    if signer is None:\n", "    if False:\n"),
            ("    return replace(contents, retired=())\n", "    return contents\n"),
            ("    if contents.leaf and contents.issuer:\n        return ()\n", ""),
            ("    if contents.leaf and contents.issuer:\n", "    if contents.leaf:\n"),
            (
                "published.difference(contents.trusted) if _is_ours(certificate, now)",
                "published if _is_ours(certificate, now)",
            ),
            (
                "published.difference(contents.trusted) if _is_ours(certificate, now)",
                "published.difference(contents.trusted)",
            ),
            (", reverse=True)", ")"),
            ("max(0, _MAX_TRUSTED - len(contents.trusted))", "_MAX_TRUSTED"),
            ("max(0, _MAX_TRUSTED - len(contents.trusted))", "_MAX_TRUSTED - len(contents.trusted)"),
            ("return named and certificate.not_valid_after_utc > now and", "return named and"),
            (
                "return named and certificate.not_valid_after_utc > now and",
                "return certificate.not_valid_after_utc > now and",
            ),
            (" and certificates.is_authority(certificate)\n", "\n"),
            ("if each.certificate.not_valid_after_utc > now)", "if each.certificate.not_valid_after_utc >= now)"),
            ("if each.not_valid_after_utc > now)", "if each.not_valid_after_utc >= now)"),
            ("if each.not_valid_after_utc > now)", ")"),
            ("authorities=(created, *contents.authorities)", "authorities=(*contents.authorities, created)"),
            ("authorities=(created, *contents.authorities)", "authorities=(created,)"),
            ("contents.retired[: max(0, _MAX_TRUSTED - 1 - len(contents.authorities))]", "contents.retired"),
            (
                "max(0, _MAX_TRUSTED - 1 - len(contents.authorities))",
                "max(0, _MAX_TRUSTED - len(contents.authorities))",
            ),
            ("max(0, _MAX_TRUSTED - 1 - len(contents.authorities))", "_MAX_TRUSTED - 1 - len(contents.authorities)"),
            ("lifetime=lifetimes.authority, now=now)", "lifetime=lifetimes.leaf, now=now)"),
            ("if contents.leaf and contents.leaf.expires <= now:", "if contents.leaf and contents.leaf.expires < now:"),
            ("if contents.leaf and contents.leaf.expires <= now:", "if False:"),
            ("return max(contents.authorities, key=", "return min(contents.authorities, key="),
            ("needed = max((_count", "needed = min((_count"),
            ("for each in contents.trusted), default=0)", "for each in ()), default=0)"),
            ("if each.since and now >= each.since + lifetimes.settle]", "if each.since]"),
            (
                "if each.since and now >= each.since + lifetimes.settle]",
                "if each.since and now > each.since + lifetimes.settle]",
            ),
            ("_count(settled, each.certificate) >= needed)", "_count(settled, each.certificate) > 0)"),
            ("_count(settled, each.certificate) >= needed)", "_count(configurations, each.certificate) >= needed)"),
            ("next((each for each in contents.authorities if each.certificate == issuer), None)", "None"),
            (
                "next((each for each in contents.authorities if each.certificate == issuer), None)",
                "next(iter(contents.authorities), None)",
            ),
            ("if leaf is None or issuer is None:", "if leaf is None:"),
            ("    if leaf.expires <= now:\n", "    if leaf.expires < now:\n"),
            ("    if leaf.expires <= now:\n", "    if False:\n"),
            ("contents.trusted.index(signer.certificate) < contents.trusted.index(issuer)", "False"),
            (
                "contents.trusted.index(signer.certificate) < contents.trusted.index(issuer)",
                "signer.certificate != issuer",
            ),
            ("leaf.expires - now <= lifetimes.leaf / 3 and", "leaf.expires - now < lifetimes.leaf / 3 and"),
            (" and _end(signer, lifetimes, now) > leaf.expires:", ":"),
            ("_end(signer, lifetimes, now) > leaf.expires:", "_end(signer, lifetimes, now) >= leaf.expires:"),
            ("if not all(map(leaf.covers, hosts)):", "if not any(map(leaf.covers, hosts)):"),
            ("lifetime=_end(signer, lifetimes, now) - now", "lifetime=lifetimes.leaf"),
            ("contents.authorities[: contents.authorities.index(signer) + 1]", "contents.authorities"),
            (
                "contents.authorities[: contents.authorities.index(signer) + 1]",
                "contents.authorities[: contents.authorities.index(signer)]",
            ),
            ("(*(authority.certificate for authority in succeeded), *contents.retired)", "contents.retired"),
            (", *contents.retired)\n    return Contents", ",)\n    return Contents"),
            (
                ".replace(microsecond=0), signer.certificate.not_valid_after_utc)",
                ".replace(microsecond=0), now + lifetimes.leaf)",
            ),
            ("moments = [certificate.not_valid_after_utc for certificate in contents.trusted]", "moments = []"),
            (
                "    moments += [moment - lifetimes.authority / 3 for moment in moments[: len(contents.authorities)]]\n",
                "",
            ),
            ("moments[: len(contents.authorities)]]", "moments]"),
            (
                "    moments += [configuration.since + lifetimes.settle for configuration in configurations if configuration.since]\n",
                "",
            ),
            (
                "moments += [contents.leaf.expires, contents.leaf.expires - lifetimes.leaf / 3]",
                "moments += [contents.leaf.expires]",
            ),
            (
                "moments += [contents.leaf.expires, contents.leaf.expires - lifetimes.leaf / 3]",
                "moments += [contents.leaf.expires - lifetimes.leaf / 3]",
            ),
            (
                "return min((moment for moment in moments if moment > now)",
                "return max((moment for moment in moments if moment > now)",
            ),
            ("if moment > now)", "if moment >= now)"),
        ),
        equivalent=(
            (
                "(now + lifetimes.leaf).replace(microsecond=0)",
                "(now + lifetimes.leaf)",
                "The certificate has whole seconds anyway. The end is compared with that of a certificate in the last "
                "third of its life, so a fraction of a second makes no difference.",
            ),
            (
                "default=now + lifetimes.settle)",
                "default=now)",
                "A plan always has a CA that expires later than now, so the default is not used.",
            ),
        ),
    ),
)
