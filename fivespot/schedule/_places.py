"""Places and abbreviations that people write in place of a time zone, for hints only, with the zone each stands for.

Keys are what :func:`~.zone_hints.squeezed` leaves of a name. A place that shares its name with a zone of the IANA
database is not listed. Zones are those whose rules the place has today.
"""

ABBREVIATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ACDT": ("Australian Central Daylight Time", ("Australia/Adelaide",)),
    "ACST": ("Australian Central Standard Time", ("Australia/Adelaide", "Australia/Darwin")),
    "ADT": ("Atlantic Daylight Time", ("America/Halifax",)),
    "AEDT": ("Australian Eastern Daylight Time", ("Australia/Sydney",)),
    "AEST": ("Australian Eastern Standard Time", ("Australia/Sydney", "Australia/Brisbane")),
    "AKDT": ("Alaska Daylight Time", ("America/Anchorage",)),
    "AKST": ("Alaska Standard Time", ("America/Anchorage",)),
    "ART": ("Argentina Time", ("America/Argentina/Buenos_Aires",)),
    "AST": ("Atlantic Standard Time or Arabia Standard Time", ("America/Halifax", "Asia/Riyadh")),
    "AWST": ("Australian Western Standard Time", ("Australia/Perth",)),
    "BRT": ("Brasilia Time", ("America/Sao_Paulo",)),
    "BST": ("British Summer Time or Bangladesh Standard Time", ("Europe/London", "Asia/Dhaka")),
    "CAT": ("Central Africa Time", ("Africa/Maputo",)),
    "CDT": ("Central Daylight Time (also China's or Cuba's)", ("America/Chicago", "America/Havana")),
    "CEDT": ("Central European Summer Time", ("Europe/Berlin",)),
    "CEST": ("Central European Summer Time", ("Europe/Berlin",)),
    "CLT": ("Chile Time", ("America/Santiago",)),
    "COT": ("Colombia Time", ("America/Bogota",)),
    "CST": (
        "Central Standard Time, China Standard Time or Cuba Standard Time",
        ("America/Chicago", "Asia/Shanghai", "America/Havana"),
    ),
    "CT": ("Central Time", ("America/Chicago",)),
    "EAT": ("East Africa Time", ("Africa/Nairobi",)),
    "EDT": ("Eastern Daylight Time", ("America/New_York",)),
    "EEST": ("Eastern European Summer Time", ("Europe/Athens", "Europe/Helsinki", "Europe/Kyiv")),
    "ET": ("Eastern Time", ("America/New_York",)),
    "GST": ("Gulf Standard Time", ("Asia/Dubai",)),
    "HKT": ("Hong Kong Time", ("Asia/Hong_Kong",)),
    "ICT": ("Indochina Time", ("Asia/Bangkok", "Asia/Ho_Chi_Minh")),
    "IDT": ("Israel Daylight Time", ("Asia/Jerusalem",)),
    "IST": (
        "India Standard Time, Irish Standard Time or Israel Standard Time",
        ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    ),
    "JST": ("Japan Standard Time", ("Asia/Tokyo",)),
    "KST": ("Korea Standard Time", ("Asia/Seoul",)),
    "MDT": ("Mountain Daylight Time", ("America/Denver",)),
    "MESZ": ("Central European Summer Time", ("Europe/Berlin",)),
    "MEZ": ("Central European Time", ("Europe/Berlin",)),
    "MSK": ("Moscow Time", ("Europe/Moscow",)),
    "MT": ("Mountain Time", ("America/Denver",)),
    "MYT": ("Malaysia Time", ("Asia/Kuala_Lumpur",)),
    "NDT": ("Newfoundland Daylight Time", ("America/St_Johns",)),
    "NST": ("Newfoundland Standard Time", ("America/St_Johns",)),
    "NZDT": ("New Zealand Daylight Time", ("Pacific/Auckland",)),
    "NZST": ("New Zealand Standard Time", ("Pacific/Auckland",)),
    "PDT": ("Pacific Daylight Time", ("America/Los_Angeles",)),
    "PHT": ("Philippine Time", ("Asia/Manila",)),
    "PKT": ("Pakistan Time", ("Asia/Karachi",)),
    "PST": ("Pacific Standard Time or Philippine Standard Time", ("America/Los_Angeles", "Asia/Manila")),
    "PT": ("Pacific Time", ("America/Los_Angeles",)),
    "SAST": ("South Africa Standard Time", ("Africa/Johannesburg",)),
    "SGT": ("Singapore Time", ("Asia/Singapore",)),
    "TRT": ("Turkey Time", ("Europe/Istanbul",)),
    "WAT": ("West Africa Time", ("Africa/Lagos",)),
    "WEST": ("Western European Summer Time", ("Europe/Lisbon",)),
    "WIB": ("Western Indonesia Time", ("Asia/Jakarta",)),
}
"""Abbreviation -> what it stands for, and a zone for each meaning. Those that are zones themselves (EST, CET) are not
here."""

_BY_ZONE = {
    "Africa/Cairo": "alexandria giza",
    "Africa/Casablanca": "rabat marrakesh marrakech",
    "Africa/Johannesburg": "capetown pretoria durban",
    "Africa/Lagos": "abuja",
    "Africa/Nairobi": "mombasa",
    "America/Argentina/Buenos_Aires": "argentina",
    "America/Bogota": "medellin cali",
    "America/Chicago": (
        "dallas houston austin sanantonio minneapolis milwaukee stlouis kansascity memphis nashville neworleans omaha "
        "oklahomacity desmoines texas illinois minnesota wisconsin missouri iowa louisiana oklahoma alabama "
        "mississippi arkansas central centraltime"
    ),
    "America/Denver": (
        "saltlakecity albuquerque coloradosprings colorado utah newmexico montana wyoming mountain mountaintime"
    ),
    "America/Edmonton": "calgary alberta",
    "America/Halifax": "novascotia",
    "America/Los_Angeles": (
        "sanfrancisco siliconvalley sandiego sanjose seattle sacramento oakland lasvegas california "
        "washingtonstate nevada pacific pacifictime"
    ),
    "America/Mexico_City": "guadalajara puebla",
    "America/New_York": (
        "boston washingtondc philadelphia miami atlanta baltimore charlotte pittsburgh cleveland columbus "
        "cincinnati orlando tampa raleigh buffalo newark jerseycity brooklyn manhattan ashburn nyc wallstreet "
        "massachusetts newjersey pennsylvania ohio northcarolina southcarolina virginia maryland "
        "connecticut vermont maine newhampshire delaware eastern easterntime"
    ),
    "America/Phoenix": "arizona tucson scottsdale",
    "America/Sao_Paulo": "riodejaneiro rio brasilia belohorizonte curitiba portoalegre",
    "America/Toronto": "ottawa quebec quebeccity mississauga ontario",
    "America/Vancouver": "britishcolumbia",
    "Asia/Dhaka": "chittagong",
    "Asia/Dubai": "abudhabi sharjah",
    "Asia/Ho_Chi_Minh": "hanoi danang vietnam",
    "Asia/Jakarta": "surabaya bandung",
    "Asia/Jerusalem": "haifa",
    "Asia/Karachi": "lahore islamabad rawalpindi",
    "Asia/Kolkata": (
        "mumbai bombay delhi newdelhi bangalore bengaluru chennai madras hyderabad pune ahmedabad noida gurgaon "
        "gurugram jaipur kochi"
    ),
    "Asia/Kuala_Lumpur": "penang johorbahru malaysia",
    "Asia/Manila": "cebu quezoncity makati",
    "Asia/Riyadh": "jeddah mecca dammam",
    "Asia/Seoul": "busan incheon korea",
    "Asia/Shanghai": (
        "beijing peking shenzhen guangzhou hangzhou chengdu wuhan nanjing tianjin suzhou xian dalian qingdao china"
    ),
    "Asia/Tokyo": "osaka kyoto nagoya yokohama fukuoka sapporo kobe",
    "Australia/Sydney": "newsouthwales wollongong",
    "Australia/Brisbane": "goldcoast cairns",
    "Europe/Amsterdam": "rotterdam thehague denhaag eindhoven utrecht holland",
    "Europe/Athens": "thessaloniki",
    "Europe/Berlin": (
        "munich muenchen munchen hamburg frankfurt cologne koeln koln stuttgart dusseldorf duesseldorf leipzig dresden "
        "hannover hanover nuremberg nuernberg bremen dortmund bonn karlsruhe mannheim walldorf germany "
        "deutschland"
    ),
    "Europe/Brussels": "antwerp ghent bruges",
    "Europe/Bucharest": "cluj clujnapoca timisoara iasi",
    "Europe/Copenhagen": "aarhus",
    "Europe/Dublin": "cork galway",
    "Europe/Istanbul": "ankara izmir turkiye",
    "Europe/Kyiv": "lviv kharkiv odesa odessa ukraine",
    "Europe/Lisbon": "porto",
    "Europe/London": (
        "manchester edinburgh glasgow cardiff bristol leeds liverpool oxford uk england scotland "
        "wales britain greatbritain unitedkingdom"
    ),
    "Europe/Luxembourg": "luxemburg",
    "Europe/Madrid": "barcelona valencia seville sevilla bilbao malaga",
    "Europe/Moscow": "stpetersburg saintpetersburg",
    "Europe/Paris": "lyon marseille toulouse bordeaux nantes strasbourg lille",
    "Europe/Prague": "brno czechia",
    "Europe/Rome": "milan milano turin torino naples napoli florence bologna venice roma",
    "Europe/Stockholm": "gothenburg goteborg malmo",
    "Europe/Warsaw": "krakow cracow wroclaw gdansk poznan lodz warszawa",
    "Europe/Vienna": "graz linz salzburg innsbruck wien",
    "Europe/Zurich": "geneva geneve genf basel bern berne lausanne lugano zug winterthur zuerich",
    "Pacific/Auckland": "wellington christchurch",
    "Pacific/Honolulu": "hawaii",
}

PLACES: dict[str, str] = {place: zone for zone, places in _BY_ZONE.items() for place in places.split()}
"""City, state or country -> zone."""

SEVERAL_ZONES: dict[str, tuple[str, ...]] = {
    "australia": ("Australia/Sydney", "Australia/Brisbane", "Australia/Perth"),
    "brazil": ("America/Sao_Paulo", "America/Manaus"),
    "canada": ("America/Toronto", "America/Winnipeg", "America/Vancouver"),
    "indonesia": ("Asia/Jakarta", "Asia/Makassar", "Asia/Jayapura"),
    "kazakhstan": ("Asia/Almaty", "Asia/Qyzylorda"),
    "mexico": ("America/Mexico_City", "America/Tijuana", "America/Cancun"),
    "portugal": ("Europe/Lisbon", "Atlantic/Azores"),
    "russia": ("Europe/Moscow", "Asia/Yekaterinburg", "Asia/Vladivostok"),
    "spain": ("Europe/Madrid", "Atlantic/Canary"),
    "us": ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    "usa": ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    "america": ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    "unitedstates": ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    "georgia": ("Asia/Tbilisi", "America/New_York"),
    "portland": ("America/Los_Angeles", "America/New_York"),
    "washington": ("America/New_York", "America/Los_Angeles"),
    "birmingham": ("Europe/London", "America/Chicago"),
    "cambridge": ("Europe/London", "America/New_York"),
    "florida": ("America/New_York", "America/Chicago"),
    "indiana": ("America/Indiana/Indianapolis", "America/Chicago"),
    "kentucky": ("America/Kentucky/Louisville", "America/Chicago"),
    "michigan": ("America/Detroit", "America/Menominee"),
    "tennessee": ("America/Chicago", "America/New_York"),
    "kansas": ("America/Chicago", "America/Denver"),
    "nebraska": ("America/Chicago", "America/Denver"),
    "oregon": ("America/Los_Angeles", "America/Boise"),
    "idaho": ("America/Boise", "America/Los_Angeles"),
    "europe": ("Europe/London", "Europe/Berlin", "Europe/Athens"),
    "eu": ("Europe/Lisbon", "Europe/Berlin", "Europe/Athens"),
}
"""Places with several zones, and some of them."""
